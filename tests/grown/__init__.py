"""Random programs grown by execution: each next statement is one that runs in plain Python on the values at hand.

Independent of `tests/random_programs`, which builds programs from a grammar that knows their types.  Here nothing is
known beforehand: a statement is proposed, the program is run, and the statement stays if nothing was raised.
"""
