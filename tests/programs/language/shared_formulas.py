"""Formulas that other programs import."""
import math

FACTOR = 1.7


def scale(v):
    return FACTOR * v


def decay(t, rate):
    return math.exp(-rate * t) * scale(1.0)
