"""Background compilation: a helper process compiles while the calls run the readable Python.

* `availability` - whether there is background compilation
* `message_framing` - messages between the two processes
* `compile_queue` - the queue of what is to be compiled, and the helper process that works through it
* `helper_process` - the main program of the helper process
* `interruptible_source` - Python source that stops where machine code has become available
* `deferred_compilation` - dispatchers whose machine code is made in the background
"""
