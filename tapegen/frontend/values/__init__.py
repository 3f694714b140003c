"""Abstract values: what is known about a value before the program runs.

* `pytree` - leaves, static values and structures; flatten and unflatten
* `state` - variables, cells and frames on a path
* `context` - what lowering carries around: the block being written, the state of the path, the function being read
* `guards` - assumptions of a program about a call, and their check
* `captures` - globals and closure variables
* `result_types` - result types by running functions on small prototypes
* `constant_shapes` - array extents that are known while compiling
* `type_sets` - the types that Python gives a value on several paths
* `type_join` - the one type of the values that a name has on several paths
* `narrowing` - what a branch knows about a union, and what of it lasts after the branch
* `phi` - phi nodes: joins after branches, loop-carried variables
* `dynamic_lists` - lists that grow at run time
* `complex_parts` - real and imaginary parts that are stored into
* `library_objects` - callable objects that libraries make of functions
* `materialize` - abstract values as IR expressions
"""
