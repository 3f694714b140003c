"""Scalarization: array statements as loop nests.

* `driver` - the visitor of the program
* `views` - views as index maps of their base
* `slicing` - slice bounds clipped once, before the loops
* `broadcasting` - broadcast extents
* `expressions` - fused element-wise expressions
* `permutations` - transposes, rolls, tiles, pads as index maps
* `index_functions` - arrays whose elements follow from their index
* `contractions` - matrix products: BLAS where numba supports it, loops elsewhere
* `reductions` - reductions and scans
* `concatenation` - concatenation, masks, arrays whose size depends on values
* `loop_nests` - emission of loop nests in memory order
* `control_flow` - blocks of scalarized control flow
"""
