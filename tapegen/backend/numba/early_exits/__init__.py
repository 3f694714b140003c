"""Early exits: where compiled code ends before its result, because of Ctrl-C or of a tape without memory.

numba frees nothing where a callee raises, but before a `raise` of the function itself it releases all live arrays.  So
each question (is there memory? was Ctrl-C pressed?) is asked in a block that branches to such a `raise`.

Whether Ctrl-C was pressed is asked between segments of a loop: a loop over `range` becomes two nested ones, so that the
inner one is as fast as before, and a `while` counts its iterations down.  The lengths of segments follow from the time
that they take.  Loops whose iterations the extents of arrays bound are not interrupted, unless they are three deep.

* `interrupts` - the function that compiled code calls, and what handlers of signals raise
* `questions` - the questions, as functions that numba compiles
* `insertion` - where they are asked
"""
