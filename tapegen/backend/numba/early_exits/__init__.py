"""Early exits: where compiled code ends before its result, because of Ctrl-C or of a tape without memory.

numba frees nothing where a callee raises, but before a `raise` of the function itself it releases all live arrays.  So
each condition (no memory, Ctrl-C was pressed) is tested in a block that branches to such a `raise`.

Interrupts are polled in `while` loops and in the outermost loops over a `range` that no extent of an
array bounds: they count their iterations down, and call a function when none are left, which says how many come next.
Innermost loops over elements of arrays do not poll: vector instructions may do their iterations.

* `interrupts` - the function that compiled code calls, and what handlers of signals raise
* `exit_conditions` - the conditions, as functions that numba compiles
* `exit_insertion` - where they are tested
"""
