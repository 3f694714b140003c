"""Lowering of expressions.

* `expressions` - dispatch over the nodes of an expression
* `operators` - unary, binary and augmented operators
* `comparisons` - comparisons, boolean operators, conditional expressions
* `unions` - values of one of two kinds
* `subscripts` - elements, views and copies of arrays; items of containers
* `subscript_stores` - stores into them
* `overlapping_stores` - what NumPy does where the right side is a view of the array
* `array_indexing` - index items of arrays, and the type of what they select
* `iterables` - what a for loop iterates over
* `progress_bars` - loops over tqdm
* `comprehensions` - comprehensions and generator expressions
* `strings` - f-strings, values in messages
"""
