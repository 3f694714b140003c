"""Machine code: all contact with numba and LLVM.

* `build` - generated source as callables
* `compiler` - the numba compiler pipeline, with errors that name their line
* `overloads` - overloads that numba resolves by asking us
* `liveness` - liveness of names in numba's IR
* `register_promotion` - names as SSA values instead of stack slots
* `range_loops` - loops over `range(n)` in few instructions
* `list_operations` - outlined list operations
* `allocation` - array allocation
* `alias_scopes` - `alias.scope` and `noalias` metadata
* `two_tier_optimization` - reduced optimization of long functions
* `matrix_products` - matrix products and linear systems for all memory layouts
* `lapack` - LAPACK calls as `scipy.linalg.cython_lapack` exports them
* `fft` - Fourier transforms by the loops of `numpy.fft`
* `special_functions` - functions that `scipy.special.cython_special` exports
* `memory_limit` - how much memory a call may take
* `code_memory` - what LLVM keeps of a program that is no longer used
"""
