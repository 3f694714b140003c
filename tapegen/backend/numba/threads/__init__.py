"""Threads of compiled code: chunks of parallel loops.

* `pool` - the threads of this process, which run chunks without the interpreter
* `run_chunks` - the call of a function for each chunk in compiled code
"""
