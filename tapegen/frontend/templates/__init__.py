"""Functions lowered as Python source that is inlined in their place.

* `builtin_functions` - builtins
* `stdlib_functions` - functions of the standard library
* `library_functions` - functions of libraries that equal others of NumPy's in some cases
* `mpi_methods` - methods of mpi4py
* `ufunc_methods` - methods and keywords of ufuncs
* `cache` - lowered rule bodies and templates, reused for operands of the same types
"""
