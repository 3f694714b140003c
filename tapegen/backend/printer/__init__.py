"""Code printer: programs as Python source that a person would commit.

* `expressions` - IR expressions as Python syntax
* `nesting_limits` - expressions within the nesting depth that CPython parses
* `comments` - comments and docstrings
* `helper_functions` - functions that generated source defines for itself
* `namespace` - imports, classes and name collisions
* `module` - functions and modules
* `source` - generated source with its map to the user's lines
* `formatter` - Python syntax as text, as `ruff format` lays it out
"""
