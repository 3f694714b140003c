"""Generated text as a shared library that needs neither Python nor numba.

`objects` takes the machine code of a compiled text, `interface` writes the C functions around it, `link` makes the
library, `wrapper` the Python module that loads it.
"""
