"""Background compilation: a helper process compiles while the calls run the readable Python.

* `availability` - whether there is background compilation
* `frames` - messages between the two processes
* `jobs` - the queue of what is to be compiled, and the helper process that works through it
* `helper` - the main program of the helper process
* `interruption` - Python source that stops where machine code has become available
* `deferral` - dispatchers whose machine code is made in the background
"""
