"""Nineteen programs as a numba user writes them: the yardstick of speed and memory.

Each module has `f` (a scalar function), `args()` (full size, seeded), `small()` (the same types, for the check against
differences and for timing compilation), `WRT`, and two target ratios, `FIRST` and `GOAL`.
"""
