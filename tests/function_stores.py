"""Functions and methods that write into an array, for every kind of view they are given and every operand.

Operands are numbers, arrays that are shorter and longer than what they fill, and views that overlap it; indices repeat.
`python -m tests.function_stores` judges all programs; its words are those of `tests.view_stores`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import numpy as np

from tests.view_stores import POINT, Case, main

TARGETS = (
    "m",
    "m.T",
    "m[::-1]",
    "m[:, ::-1]",
    "m[1:]",
    "m[:, 1:]",
    "m[::2]",
    "m[0]",
    "m[:, 1]",
    "m[1, ::-1]",
    "m[:1, 1]",
    "m.ravel()",
    "m.reshape(-1)[1:8:2]",
    "m[None]",
)
"""The views that are written into."""

OPERANDS = (
    "2.0",
    "v[1] ** 2",
    "v * v",
    "v[:2]",
    "v[:1]",
    "[v[0], v[1] * v[2]]",
    "np.outer(v, v)",
    "np.outer(v, v)[:, :2]",
    "a",
    "a[::-1]",
    "a.T",
    "a[:1]",
    "m",
    "m[::-1]",
    "m[0]",
    "m[:, 0]",
    "m.ravel()[::-1]",
    "np.diagonal(m)[::-1]",
    "a * v[0]",
)
"""What is written: also what is being written into."""

VECTORS_OF_TWO = (", v[:2])", ", [v[0], v[1] * v[2]])")

POSITIONS = (
    "0",
    "-1",
    "[0, 1]",
    "[1, 0, 1]",
    "[0, 0, 0]",
    "[-1, 0]",
    "np.array([[0, 1], [1, 0]])",
    "np.array([0, -1, 1, 0])",
)
PLACES = (*POSITIONS, "slice(1, None)", "...", "a > 0.6", "([0, 1, 0], [1, 0, 1])", "(slice(None), [0, 0])")
MASKS = ("a > 0.6", "(a > 0.6).ravel()", "v > 0.6", "np.array([True, False, True])", "True", "a > 9.0")

CALLS = (
    "np.put(a, POSITION, OPERAND)",
    "np.put(a, POSITION, OPERAND, mode='wrap')",
    "np.put(a, POSITION, OPERAND, 'clip')",
    "np.put(a, [0, 25, -12], OPERAND, 'wrap')",
    "a.put(POSITION, OPERAND)",
    "np.place(a, MASK, OPERAND)",
    "np.putmask(a, MASK, OPERAND)",
    "np.copyto(a, OPERAND)",
    "np.copyto(a, OPERAND, where=MASK)",
    "np.copyto(a, OPERAND, casting='unsafe')",
    "np.fill_diagonal(a, OPERAND)",
    "np.fill_diagonal(a, OPERAND, wrap=True)",
    "np.put_along_axis(a, np.argsort(a, axis=0)[1:], OPERAND, 0)",
    "np.put_along_axis(a, np.argsort(a, axis=-1), OPERAND, -1)",
    "np.put_along_axis(a, np.argsort(a, axis=-1)[..., :1] * 0, OPERAND, axis=-1)",
    "np.put_along_axis(a, np.array([0, 1]), OPERAND, None)",
    "a.flat[POSITION] = OPERAND",
    "a.flat[1:] = OPERAND",
    "a.flat[::-1] = OPERAND",
    "a.flat[:] = OPERAND",
    "a.flat[...] = OPERAND",
    "a.flat = OPERAND",
    "a.flat[0] *= OPERAND",
    "a.flat[1:] += OPERAND",
    "a.fill(OPERAND)",
    "a.sort()",
    "a.sort(axis=0)",
    "a.sort(0, 'stable')",
    "np.ndarray.sort(a)",
    "a.partition(1)",
    "a.partition(0, axis=0)",
    "np.nan_to_num(a, copy=False)",
    "a[PLACE] = OPERAND",
    "a[PLACE] += OPERAND",
    "a[PLACE] *= OPERAND",
    "a.__setitem__(PLACE, OPERAND)",
    "np.add.at(a, PLACE, OPERAND)",
    "np.subtract.at(a, PLACE, OPERAND)",
    "np.multiply.at(a, PLACE, OPERAND)",
    "np.divide.at(a, PLACE, OPERAND)",
    "np.maximum.at(a, PLACE, OPERAND)",
    "np.power.at(a, PLACE, OPERAND)",
    "np.negative.at(a, PLACE)",
    "np.sin.at(a, PLACE)",
)
"""What writes."""

READS = ("m * v", "np.sum(d[1] * d[0] ** 2) + np.sum(a)")
"""What reads the array afterwards, by its first name, or by that of a view and of what was written into."""


def cases() -> Iterator[Case]:
    """All programs, also those that plain Python refuses."""
    parts = {"POSITION": POSITIONS, "PLACE": PLACES, "MASK": MASKS, "OPERAND": OPERANDS}
    for call in CALLS:
        holes = [name for name in parts if name in call]
        for target, *chosen, read in itertools.product(TARGETS, *(parts[name] for name in holes), READS):
            text = call
            for name, part in zip(holes, chosen, strict=True):
                text = text.replace(name, part)
            if ".at(a, np.array([[" in text and _is_vector(target) and text.endswith(VECTORS_OF_TWO):
                continue  # NumPy 2.4 reads past the end of the values
            yield Case(f"def f(m, v):\n    a = {target}\n    d = m.T\n    {text}\n    return {read}\n", POINT)


def _is_vector(target: str) -> bool:
    return np.ndim(eval(target, {"m": POINT[0]})) == 1


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main(sys.argv[1:], cases) > 0)
