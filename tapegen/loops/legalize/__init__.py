"""Legalization: scalar operations in the form that gives NumPy's and Python's results in numba.

* `registry` - the table of lowerings
* `builder` - emission of statements, fresh names, checks
* `precision` - dtypes of scalars, and conversions
* `short_axes` - sizes of short axes that are known from the first call
* `scalar_ops` - operations on scalars: precision as NumPy has it, errors as Python raises them
* `complex_ops` - operations on complex scalars
* `math_domains` - arguments outside the domain of functions of `math`
* `combinatorics` - factorials, permutations, combinations
* `overflow_checks` - operations on Python integers that must not wrap around
"""
