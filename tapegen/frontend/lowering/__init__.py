"""Lowering of statements and control flow.

* `statements` - assignments, expression statements, assert, raise, inner functions
* `attribute_stores` - assignments to attributes
* `control_flow` - statement sequences, branches, paths that leave a block early
* `branches` - `if`, and what its branches leave behind
* `run_time_loops` - loops with carried variables
* `unrolled_loops` - loops that are unrolled
* `loops` - the choice between both
* `product_loops` - one loop over tuples as a loop nest
* `exceptions` - `try` with handlers that continue
* `context_managers` - `with` of the user's own context managers
* `warnings` - warnings that a program makes errors of
* `generators` - generators of the user's own functions
* `emit` - constant folding and emission of calls
* `temporary_names` - names of intermediate results
* `finalize` - from open blocks to the finished program: phi resolution, final names
"""
