"""`.flat` of arrays in every memory layout."""

from __future__ import annotations

import numpy as np
import pytest

import tapegen as tg
from tests.grown.checks import judge

LAYOUTS = {
    "C": "v.reshape(2, 3) * 1.0",
    "transposed": "(v.reshape(3, 2) * 1.0).T",
    "strided": "np.outer(v, v)[1::3, ::2]",
    "reversed": "np.outer(v, v)[:2, ::-2]",
    "stack": "np.outer(v, v).reshape(6, 2, 3)[::3, :, ::2].T",
    "row": "(v * 1.0)[::2]",
    "reversed row": "(v * 1.0)[::-1]",
    "column": "np.outer(v, v)[:, 1]",
}
USES = {
    "load": "r = a.flat[k] * a.flat[-1]",
    "store": "a.flat[k] = 2.0 * a.flat[0]\nr = np.sum(a * a)",
    "augmented": "a.flat[k] *= a.flat[1]\nr = np.sum(a * a)",
    "loop": "r = 0.0\nfor i in range(a.size):\n    a.flat[i] = a.flat[i] * v[0] + a.flat[i - 1]\n    r += a.flat[i]",
    "row": "r = np.sum(a.flat[1:] * v[0])\nfor t in a.flat:\n    r += t * t",
}
PROGRAM = """
import numpy as np

def f(v, k):
    a = {layout}
    {use}
    return r + np.sum(a)

def arguments():
    return (np.array([0.5, 0.7, 1.1, 1.9, -0.4, 1.3]), {k})
"""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("use", USES)
def test_flat(layout: str, use: str) -> None:
    for k in (2, -2):
        text = PROGRAM.format(layout=LAYOUTS[layout], use=USES[use].replace("\n", "\n    "), k=k)
        verdict = judge(text, ("primal", "reverse", "forward", "loops")[: 4 if k > 0 else 2])
        expected = "refused" if use == "row" and layout in ("transposed", "strided", "reversed", "stack") else "right"
        assert verdict.kind == expected, verdict


def test_places_outside_raise_as_in_plain_python() -> None:
    def f(v: np.ndarray, k: int) -> float:
        return np.outer(v, v).T.flat[k]

    for k in (4, -5):
        with pytest.raises(IndexError):
            tg.grad(f)(np.array([0.5, 0.7]), k)
