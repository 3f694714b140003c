"""Calls: resolution, inlining, outlining, recursion, nested derivatives.

* `resolve` - which function is called, and which argument goes where
* `handlers` - special-cased functions and methods, and the parameters they understand
* `library_calls` - argument normalization of library calls, and whether there is a rule
* `opaque_calls` - foreign functions, called as they are on values without a derivative
* `custom_rules` - functions of the user that have rules of their own
* `constructors` - calls of classes
* `inline` - Python functions inlined at their calls
* `outline` - a call lowered into a program of its own
* `repack` - results of an outlined program in the structures they belong to
* `nested_derivatives` - derivatives taken inside a program
* `batches` - a function called for each instance of a batch
* `communication` - methods of mpi4py, which other ranks take part in
* `random_replay` - the same random draws in each run of an outlined program
* `recursion` - recursive functions as routines
* `recursion_signatures` - what a recursive function is lowered for
* `recursion_fixpoint` - result types of recursive functions by fixpoint iteration
"""
