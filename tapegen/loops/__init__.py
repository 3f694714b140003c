"""Array statements as loop nests: the program that numba compiles.

* `pipeline` - the passes in order
* `analysis` - affine forms, bounds, aliases, dependence
* `legalize` - scalar operations in the form that gives NumPy's and Python's results in numba
* `library` - library calls in compiled code
* `scalarize` - array statements as loop nests
* `locality` - fusion, interchange, packing, scalar replacement
* `stencils` - adjoints of stencils: gathers instead of scattered additions
* `parallel` - loops that several threads run
* `vectorize` - inner loops as vector instructions need them

The input is a finished function whose statements may hold whole expression trees of arrays; the output has loops,
scalar operations and calls that numba supports.  Results and errors are those of NumPy and Python.  Bounds checks that
cannot be proved are emitted, hoisted before the loops where possible.  A loop nest that may raise is reordered only
where no effect of it outlives an error.  A backward sweep may recompute and add in any order; in the primal, the order
of floating-point operations is the user's.
"""
