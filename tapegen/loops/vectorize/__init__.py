"""Vectorization: innermost loops in the shape that LLVM vectorizes.

* `excluded_iterations` - index set splitting of loops that leave out one iteration
* `short_loops` - full unrolling of loops over small vectors
* `height_reduction` - recurrence height reduction
* `loop_reversal` - loops that count up
* `shifted_gather` - additions to neighbouring elements as a loop over the elements
* `loop_distribution` - additions that no iteration waits for, in loops of their own
* `index_set_splitting` - index set splitting of loops with tests of their counters
* `vector_calls` - vector variants of elementary functions, with loop versioning
* `modulo_reduction` - strength reduction of modulo
* `if_conversion` - if-conversion of guarded divisions
* `check_coalescing` - coalescing of bounds checks
* `strip_mining` - strip-mining of reductions
* `dot_fusion` - horizontal fusion of dot products
* `paired_dot_products` - inner products of two iterations in one pass
* `unroll_and_jam` - unroll-and-jam of loops around reductions
* `size_cse` - common subexpression elimination of sizes
"""
