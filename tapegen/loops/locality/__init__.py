"""Locality optimizations: fewer loops and arrays, and memory accesses close together.

* `dead_stores` - dead code and dead store elimination
* `live_range_splitting` - one array variable for each live range
* `interchange` - interchange of perfect loop nests
* `block_items` - the statements of a block as items that passes move
* `check_hoisting` - checks and scalar definitions hoisted before loop nests
* `outer_fusion` - fusion of outer loops that pass through the same rows
* `array_contraction` - arrays of which each iteration needs a slice alone
* `fusion` - loop fusion and array contraction
* `zero_init_sinking` - zero initialization sunk to the first use
* `imperfect_interchange` - loop distribution and interchange
* `packing_buffers` - the visitor of packing passes
* `column_packing` - strided columns packed into contiguous buffers
* `scalar_replacement` - array elements as scalars inside a loop
* `store_forwarding` - elements that an iteration has stored as scalars
"""
