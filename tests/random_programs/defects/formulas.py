"""Defects of derivative rules."""

from __future__ import annotations

import operator

import numpy as np

from tapegen.rules import helpers
from tapegen.rules.numpy import reductions
from tests.random_programs.defects.switch import helper, likely, rule

ELEMENTWISE = (
    rule("x * y: partials swapped", operator.mul, ("return y, x", "return x, y")),
    rule("x / y: wrong sign", operator.truediv, ("-out / y", "out / y")),
    rule("x ** y: the exponent not lowered", operator.pow, ("(y - (y != 0))", "y"), ("(y - 1)", "y")),
    rule("x ** y: logarithm of the exponent", operator.pow, ("np.log(x + (x == 0))", "np.log(abs(y) + (y == 0))")),
    rule("x % y: no derivative by y", operator.mod, ("-(x // y)", "0.0")),
    rule("sqrt: factor one half forgotten", np.sqrt, ("0.5 / out", "1.0 / out")),
    rule("tanh: wrong sign", np.tanh, ("1.0 - out * out", "1.0 + out * out")),
    rule("cos: wrong sign", np.cos, ("-np.sin(x)", "np.sin(x)")),
    rule("abs: derivative one", np.abs, ("np.sign(x)", "1.0")),
    rule("log1p: the one forgotten", np.log1p, ("1.0 / (1.0 + x)", "1.0 / x"), needs="log1p"),
    rule("arctan2: wrong sign", np.arctan2, ("-y / q", "y / q"), needs="arctan2"),
    rule("hypot: partials swapped", np.hypot, ("x / length, y / length", "y / length, x / length"), needs="hypot"),
    rule(
        "logaddexp: one weight for both",
        np.logaddexp,
        ("y == out, 0.0, y - out", "x == out, 0.0, x - out"),
        needs="logaddexp",
    ),
    rule(
        "where: branches swapped",
        np.where,
        ("np.where(condition, 0.0, out_bar)", "np.where(condition, out_bar, 0.0)"),
        needs="where",
    ),
    rule("maximum: the smaller one", np.maximum, ("np.where(x > y", "np.where(x < y")),
    rule("clip: no upper bound", np.clip, ("(a >= a_min) & (a <= a_max)", "a >= a_min"), needs="clip"),
)

ARRAYS = (
    helper(
        "a reduction is spread along the first axis",
        helpers,
        "expand_like",
        ("np.expand_dims(out_bar, axis)", "np.expand_dims(out_bar, 0)"),
    ),
    helper(
        "a mean divides by the size of the array",
        helpers,
        "count_along",
        ("return np.shape(x)[axis]", "return np.size(x)"),
    ),
    helper(
        "a product counts what follows twice",
        reductions,
        "product_of_others",
        ("return before * reverse_axis(after, axis)", "return reverse_axis(after, axis)"),
    ),
    rule("max: the cotangent for every element that ties", np.max, (" / kept_count(hit, axis, a.dtype)", "")),
    rule(
        "cumsum: summed from the front",
        np.cumsum,
        ("reverse_axis(np.cumsum(reverse_axis(out_bar, axis), axis=axis), axis)", "np.cumsum(out_bar, axis=axis)"),
        ("np.cumsum(out_bar[::-1])[::-1]", "np.cumsum(out_bar)"),
        needs="cumsum",
    ),
    rule(
        "diff: wrong sign",
        np.diff,
        ("return diff_bar(out_bar, a, n, axis)", "return diff_bar(-out_bar, a, n, axis)"),
        needs="diff",
    ),
    rule(
        "sort: the permutation instead of its inverse",
        np.sort,
        ("a_bar[order] = out_bar", "a_bar[:] = out_bar[order]"),
        needs="sort",
    ),
    rule(
        "roll: in the same direction",
        np.roll,
        ("np.roll(out_bar, -shift, axis)", "np.roll(out_bar, shift, axis)"),
        needs="roll",
    ),
    rule("flip: not turned back", np.flip, ("return np.flip(out_bar, axis)", "return out_bar")),
    rule("tril: the other triangle", np.tril, ("np.tril(out_bar, k)", "np.triu(out_bar, k)"), needs="tril"),
    rule(
        "matrix times vector: outer product transposed",
        operator.matmul,
        ("np.outer(out_bar, b), a.T @ out_bar", "np.outer(b, out_bar), a.T @ out_bar"),
    ),
    rule("matrix times matrix: not transposed", operator.matmul, ("out_bar @ matrix_transpose(b)", "out_bar @ b")),
    rule(
        "outer: the factors swapped",
        np.outer,
        ("return out_bar @ b, a @ out_bar", "return out_bar @ a, b @ out_bar"),
        needs="outer",
    ),
    rule(
        "concatenate: every part from the front",
        np.concatenate,
        ("slice_axis(out_bar, axis, start, stop)", "slice_axis(out_bar, axis, 0, stop - start)"),
        needs="concatenate",
    ),
    rule(
        "stack: every part the first one",
        np.stack,
        ("index_axis(out_bar, axis, k)", "index_axis(out_bar, axis, 0)"),
        needs="stack",
    ),
    rule("std: divided by the variance", np.std, ("(out + (out == 0.0))", "(out * out + (out == 0.0))"), needs="std"),
)

DEFECTS = likely("tests/rules/test_rules.py", *ELEMENTWISE, *ARRAYS)
