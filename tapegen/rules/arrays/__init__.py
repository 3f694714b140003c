"""Rules of functions that make, rearrange and select array elements.

* `creation` - copies, conversions, constant and evenly spaced arrays
* `shape_manipulation` - reshape, transpose, pad and their like
* `concatenation` - concatenation and splitting
* `indexing` - selection of elements, interpolation in tables
* `selection` - compress, insert, delete, repeat
* `inplace` - functions that write into their first argument
* `sorting` - sorting, medians, quantiles
* `sets` - sorted unique elements
* `masked` - masked arrays, refused
"""
