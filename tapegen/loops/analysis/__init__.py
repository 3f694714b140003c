"""Analyses of the loop passes.

* `symbolic_bounds` - bounds of integers and sizes at a program point
* `flow_facts` - facts at program points, computed on demand
* `block_queries` - variables that a block uses, whether its end is reached
* `alias_pairs` - which variables may share memory
* `view_layouts` - results that are views or copies by the layout of an array
* `dependence` - loop nests as data, and dependence tests
* `rounding_sensitive` - values that control flow or indices depend on
* `trip_counts` - constant bounds of the trip counts of loops
* `loop_liveness` - what is read after a loop, and which arrays have one name there
* `iteration_order` - the orders in which the iterations of a loop may run
* `independence` - loops whose iterations are independent except for sums
* `loop_visitor` - the visitor of innermost loops
"""
