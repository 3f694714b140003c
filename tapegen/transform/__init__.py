"""Transformations: a program and facts in, a program out.

* `analyses` - the analyses that transformations share, computed once per program
* `loop_extraction` - loops of programs that run as Python, as functions to compile
* `messages` - programs without their messages
* `autodiff` - forward and reverse mode
* `recording` - what the backward sweep reads: live, recomputed or recorded
* `simplify` - common subexpressions, dead code, copies, loop-invariant code
"""
