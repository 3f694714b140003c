"""What the loop passes know about a program.

* `affine` - integer expressions as affine forms
* `symbolic_bounds` - bounds of integers and sizes at a program point
* `flow_facts` - facts along a walk over the program, computed on demand
* `block_queries` - names that a block uses, whether its end is reached
* `alias_pairs` - which names may share memory
* `view_layouts` - results that are views or copies by the layout of an array
* `dependence` - loop nests as data, and dependence tests
* `rounding_sensitive` - values that control flow or indices depend on
* `trip_counts` - how many iterations loops have
* `iteration_order` - the orders in which the iterations of a loop may run
* `independence` - loops whose iterations are independent, but for sums
* `loop_visitor` - the visitor of innermost loops
"""
