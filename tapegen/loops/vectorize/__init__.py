"""Inner loops as vector instructions need them.

* `height_reduction` - recurrence height reduction
* `loop_reversal` - loops that count up
* `loop_distribution` - loop distribution
* `vector_calls` - vector forms of elementary functions, with loop versioning
* `modulo_reduction` - strength reduction of modulo
* `if_conversion` - if-conversion of guarded divisions
* `check_coalescing` - coalescing of bounds checks
* `strip_mining` - strip-mining of reductions
* `dot_fusion` - horizontal fusion of dot products
* `unroll_and_jam` - unroll-and-jam of matrix-vector rows
* `size_cse` - common sizes as one name
"""
