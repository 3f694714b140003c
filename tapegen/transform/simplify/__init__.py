"""Simplification of programs and sweeps.

* `real_domain` - roots, powers and logarithms that stay real
* `counted_loops` - `while` loops that count, as `for` loops
* `lists_to_arrays` - lists whose length is known, as arrays
* `cse` - common subexpression elimination
* `licm` - loop-invariant code motion of array values
* `dead_code` - dead code and dead store elimination
* `copy_propagation` - copy propagation and coalescing
* `cleanup` - the cleanup pipeline of a sweep
"""
