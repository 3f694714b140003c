"""Backends: generated source and machine code.

* `printer` - programs as Python source
* `numba` - Python source as machine code: all contact with numba and LLVM
* `compile_progress` - what is told of compiling: a line in terminals and notebooks, and the log
* `background` - a helper process that compiles while calls run Python
* `cache` - derived programs and machine code on disk
"""
