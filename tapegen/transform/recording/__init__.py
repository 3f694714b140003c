"""To-be-recorded analysis: what the backward sweep reads is live, recomputed or recorded.

* `cost_model` - the cost of recording a value, and of recomputing it
* `min_cut` - the cheapest choice between both, as a minimum cut
* `induction` - integers that a loop counts, as functions of the iteration
* `rematerialize` - how a value is available without a tape
* `decisions` - the decisions and the tapes as data
* `dead_shapes` - shapes of arrays that are dead when they are read
* `loop_order` - loops of both sweeps by their order
* `tape_positions` - where iterations that may run in parallel end on tapes that grow
* `plan` - the decision for each value, and the rewritten reads
* `tape_layout` - tapes as arrays: from Push and Pop to stores and loads
* `tape_sizes` - sizes of tapes and checkpoints as Python expressions of the arguments
* `checkpoint_state` - what a second run of a loop needs, and which loops cannot run twice
* `checkpoints` - loops in segments that run again: the tapes hold one segment
* `assemble` - the joint function of both sweeps, and the split into record and pullback
"""
