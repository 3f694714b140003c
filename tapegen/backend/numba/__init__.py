"""Machine code: all contact with numba and LLVM.

* `patches` - the patches of numba's internals, with self-tests and a switch
* `build` - generated source as callables
* `compiler` - the numba compiler pipeline, with errors that name their line
* `overloads` - overloads that numba resolves through callbacks
* `call_resolution` - signatures of calls, found once
* `liveness` - liveness of variables in numba's IR
* `register_promotion` - variables as SSA values instead of stack slots
* `range_loops` - loops over `range(n)` in few instructions
* `list_operations` - outlined list operations
* `element_access` - elements and shapes of arrays in few instructions
* `allocation` - array allocation
* `early_exits` - Ctrl-C in loops, and tapes without memory
* `alias_scopes` - `alias.scope` and `noalias` metadata
* `two_tier_optimization` - reduced optimization of long functions
* `workspaces` - memory that is kept for the next large arrays
* `memory_limit` - how much memory a call may take
* `code_memory` - memory that LLVM keeps for programs that are no longer used
* `threads` - threads of compiled code
* `library` - calls of BLAS, LAPACK, FFT and special functions
"""
