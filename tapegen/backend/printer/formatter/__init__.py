"""Python syntax trees as text that is stable under `ruff format`.

* `precedence` - operator precedence, and which operands need parentheses
* `literals` - spelling of numbers and strings
* `one_line` - expressions and statements on one line
* `document` - documents with optional line breaks, and their layout
* `expressions` - expressions as documents
* `statements` - statements as documents
"""
