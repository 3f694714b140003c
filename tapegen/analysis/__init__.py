"""Analyses: they read a program and return facts.

* `scopes` - the block that owns a value, and loop-carried values
* `activity` - which values carry a derivative
* `liveness` - which variables are read later
* `memory_access` - the memory that single statements read and write
* `side_effects` - mod/ref analysis
* `alias_conflicts` - stores that another live name may see
* `shape_functions` - result extents of functions by those of their arguments
* `piecewise_linear` - sizes of slices as functions of one size
* `shape_inference` - symbolic shapes, equal extents
* `interval_arithmetic` - intervals of results
* `value_ranges` - bounds of values, possible infinities and NaN
* `integer_overflow` - integers that may need more than 64 bits
* `masked_values` - values whose cotangents are masked out
* `selection_frontiers` - where a cotangent left the last selection
* `polyhedral` - element-wise dependence by integer sets
"""
