"""Abstract values: compile-time facts about values, and the state of a path.

* `pytree` - leaves, static values and structures; flatten and unflatten
* `state` - variables, cells and frames on a path
* `assumptions` - assumptions of a program about a call, and their check
* `symbol_table` - the variables of a program, and what is known of them
* `context` - lowering context: the current block, the state of the path, the current function
* `captures` - globals and closure variables
* `result_types` - result types by running functions on small prototypes
* `constant_shapes` - array extents that are known while compiling
* `type_sets` - the types that Python gives a value on several paths
* `type_join` - the join of the types that a variable has on several paths
* `narrowing` - narrowing of unions in branches, and the join after them
* `phi` - phi nodes: joins after branches, loop-carried variables
* `dynamic_lists` - lists that grow at run time
* `complex_parts` - real and imaginary parts that are stored into
* `library_objects` - callable objects that libraries make of functions
* `materialize` - abstract values as IR expressions
"""
