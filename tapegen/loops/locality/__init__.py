"""Fewer loops and arrays, and memory accesses close together.

* `dead_stores` - dead code and dead store elimination
* `live_range_splitting` - one array name for each live range
* `invariant_loads` - loads that do not change, hoisted out of innermost loops
* `block_items` - the statements of a block as items that passes move
* `check_hoisting` - checks and names in front of the loop nests between them
* `fusion` - loop fusion and array contraction
* `scatter_to_gather` - scattered additions (stencil adjoints) as gathers
* `zero_init_sinking` - zero initialization sunk to the first use
* `interchange` - loop distribution and interchange
* `packing_buffers` - the visitor of packing passes
* `column_packing` - strided columns packed into contiguous buffers
* `scalar_replacement` - array elements as scalars while a loop runs
* `pairwise_packing` - columns packed into rows for pairwise loops
"""
