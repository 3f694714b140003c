"""Stores through reshapes that are views or copies by the memory layout of an array."""

from __future__ import annotations

import pytest

from tests.grown.checks import FINE, PYTHON, RIGHT, judge

ARGUMENTS = {
    "rows": "np.array([[1.37, 0.67, -0.98], [1.3, 1.85, 0.72]])",
    "columns": "np.asfortranarray([[1.37, 0.67, -0.98], [1.3, 1.85, 0.72]])",
    "strided": "np.linspace(0.3, 1.8, 24).reshape(4, 6)[::2, ::2]",
}
COPIES = ["np.copy(a)", "np.array(a)", "a.copy()", "a.copy(order='K')", "np.copy(a, order='F')", "copy.deepcopy(a)"]
TURNED = [
    "a.T.copy()",
    "np.copy(np.outer(a[0], a[1]).T, 'C')",
    "np.broadcast_to(a[0], (2, 3)).copy()",
    "(a.T + a.T).copy()",
]
MAKERS = ["a", "a * 1.0", "np.sin(a)", "np.sort(a, axis=0)", "np.zeros_like(a) + a", "np.cumprod(a, 1)", "a[:, :]"]
RESHAPES = ["t.T.reshape(-1)", "t.reshape(-1)", "np.ravel(t)"]


def program(maker: str, reshape: str, argument: str) -> str:
    """A module for the oracles: an array, a reshape of it that is written, and what depends on both."""
    return (
        f"import copy\n\nimport numpy as np\n\n\ndef f(a):\n    t = {maker}\n    flat = {reshape}\n    flat[0] *= 3.0\n"
        "    flat[1] = flat[2] ** 2\n    return np.sum(np.sin(t)) + np.sum(a * a)\n\n\n"
        f"def arguments():\n    return ({ARGUMENTS[argument]},)\n"
    )


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("reshape", RESHAPES)
@pytest.mark.parametrize("maker", [*MAKERS, *COPIES, *TURNED])
def test_stores_through_a_reshape(maker: str, reshape: str, argument: str) -> None:
    stages = [stage for stage in PYTHON if stage not in ("forward", "jacobian", "second")]
    verdict = judge(program(maker, reshape, argument), stages)
    assert verdict.kind == RIGHT, verdict
    for stage in ("forward", "jacobian", "second"):  # of strided arrays these are refused
        verdict = judge(program(maker, reshape, argument), (stage,))
        assert verdict.kind in FINE, verdict


@pytest.mark.parametrize("maker", MAKERS)
def test_columns_are_turned_into_rows(maker: str) -> None:
    verdict = judge(program(maker, RESHAPES[0], "columns"), PYTHON)
    assert verdict.kind == RIGHT, verdict


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_compiled(argument: str) -> None:
    for maker in [*MAKERS[:3], *COPIES[:3]]:
        verdict = judge(program(maker, RESHAPES[0], argument), ("reverse", "compiled"), 120)
        assert verdict.kind in FINE, verdict
