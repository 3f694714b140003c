"""Forward and reverse mode.

* `expand_formulas` - functions whose rule is a formula, expanded
* `selection_loops` - loops that select one candidate
* `viewed_merges` - a second name for merges whose views outlive their value
* `shadow_memory` - run-time cotangent buffers where names alias only at run time
* `rule_application` - rules applied to IR operands
* `transpose` - pushforwards of linear rules that have a pullback only
* `zero_propagation` - formulas without terms that are known to be zero
* `residuals` - primal values that the backward sweep reads
* `cotangents` - cotangent accumulation
* `zero_guards` - guards of products whose partial derivative may be infinite
* `adjoint_calls` - the adjoint of a call
* `adjoint_control_flow` - the adjoint of branches and loops
* `reverse` - reverse mode
* `forward` - forward mode
* `vector_forward` - forward mode in several directions at once

Reverse mode: the backward sweep has the nesting of the forward sweep in reverse order.  A backward block may read any
primal value that was visible in its forward block; `transform.recording` then decides for each whether it is live, is
recomputed, or is recorded on a tape.  Arrays of the primal are never restored.  The cotangent of a memory location is
an array of the same shape; of a view, the same view of that (a shadow view); of a value, an expression that sums the
contributions of its uses.  A view that cannot be written through has a cotangent of its own, which is added to that
of its base before a store into the location is reversed.  Where names alias only at run time, the forward sweep
creates shadow arrays and moves them as the program moves the references.

Forward mode: each statement is followed by its tangent statement.  A Jacobian takes its directions in
blocks: the primal runs once per block, a tangent has one more axis.
"""
