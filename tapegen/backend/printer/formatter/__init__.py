"""Python syntax trees as text that is stable under `ruff format`.

* `document` - documents with optional line breaks, and their layout
* `expressions` - expressions on one line: astunparse with minimal parentheses
* `line_breaks` - expressions that are too long, as documents
* `statements` - statements and functions, with comments and the map to the user's lines
"""
