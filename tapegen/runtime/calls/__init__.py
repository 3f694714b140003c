"""Parts of a call: the cotangents it starts with, checks of its arrays, and its errors.

* `cotangents` - cotangents and tangents that a call starts with
* `call_errors` - what an exception of generated code becomes
* `argument_checks` - arrays that are written, and shapes of gradients
"""
