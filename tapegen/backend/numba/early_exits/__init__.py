"""Early exits: where compiled code ends before its result, because of Ctrl-C or of a tape without memory.

numba frees nothing where a callee raises, but before a `raise` of the function itself it releases all live arrays.  So
each question (is there memory? was Ctrl-C pressed?) is asked in a block that branches to such a `raise`.

Whether Ctrl-C was pressed is asked in `while` loops and in the outermost loops over a `range` that no extent of an
array bounds: they count their iterations down, and call a function when none are left, which says how many come next.
Innermost loops over elements of arrays do not ask: vector instructions may do their iterations.

* `interrupts` - the function that compiled code calls, and what handlers of signals raise
* `questions` - the questions, as functions that numba compiles
* `insertion` - where they are asked
"""
