"""Frontend: lowers a Python function for given argument types to IR, by abstract interpretation of its syntax tree.

* `lowered` - a lowered function, and how a call binds to it
* `lower` - the entry points: `lower_function`, `lower_call`
* `source` - from a function object to a checked syntax tree
* `values` - abstract values, the state of a path, phi nodes
* `expressions` - lowering of expressions
* `lowering` - lowering of statements and control flow
* `calls` - call resolution, inlining, outlining, recursion, nested derivatives
* `library` - special-cased functions and methods of Python and NumPy
* `templates` - functions lowered as Python source that is inlined in their place
* `mutation` - objects of the caller that a program writes

Lowering runs once for one set of argument types.  It resolves what is known at compile time (structures, options,
callees, closures); everything else becomes a statement of the program.
"""
