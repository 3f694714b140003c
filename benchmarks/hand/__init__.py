"""Adjoints written by hand, one module per kernel of `benchmarks.spelling`: the fastest that we know.

Each module has `hand`, compiled by numba: from the arguments of the kernel to its value and the gradients.
They have the sums in the order of the primal, but may divide as NumPy does, without the check for zero.
"""

import numba

by_hand = numba.njit(error_model="numpy")
