"""Source retrieval and parsing: from a function object to a checked syntax tree whose names can be resolved.

* `callables` - from whatever can be called to the plain Python function behind it
* `locate` - source retrieval, with the guard that source and code agree
* `pickling` - source that travels with a pickled function
* `syntax_tree` - gast trees, private names, bound names
* `syntax_check` - the allow-list of accepted syntax
* `hints` - what to write instead of common unsupported uses
* `desugar` - `match` and library `with` statements as simpler statements
* `desugar_try` - `try` as its body, or as branches decided while lowering
* `desugar_with` - `with` of the user's own context managers as calls around its body
* `desugar_yield` - generator functions as functions that return a list
* `parse` - the checked tree with resolved names
* `liveness` - which names may still be read after a statement
* `synthesize` - small functions made from text
"""
