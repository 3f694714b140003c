"""Element-wise array liveness by integer sets.

* `constraints` - affine forms and formulas of affine constraints
* `isl` - satisfiability of such formulas: all contact with the integer set library
* `scalar_evolution` - integers as affine forms of loop counters
* `index_extents` - extents and index positions as affine forms
* `schedule` - iteration domains, execution order, conditions
* `access_relations` - the elements that an access touches
* `array_liveness` - whether an element is overwritten after it was read
"""
