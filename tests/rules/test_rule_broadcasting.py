"""Arguments of size 1 that a function spreads over others: their cotangents are sums (rules with `broadcasts`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument
from tapegen.rules.registry import _RULES
from tests.judged import both

ONE = np.array([0.7])
THREE = np.array([1.1, 2.6, 3.2])
COLUMN = np.array([[0.3], [1.2]])
TABLE = np.array([[1.0, -2.0, 0.4, 3.0], [0.5, 1.5, 2.5, -1.0], [2.0, 0.1, 0.2, 0.3]])


def spaced(a: Any, b: Any) -> Any:
    return np.sum(np.linspace(a, b, 4) ** 2)


def selected(a: Any, b: Any) -> Any:
    return np.sum(np.select([a < b], [a * a], b) * b)


def scaled(a: Any, b: Any) -> Any:
    return np.sum(np.ldexp(a, np.array([1, 2, 3])) ** 2 * b)


def divided(a: Any, b: Any) -> Any:
    _, rest = np.divmod(b, a)
    return np.sum(rest**2)


@both
@pytest.mark.parametrize("program", [spaced, selected, scaled, divided])
def test_vectors(backend: str, program: Any) -> None:
    tg.check_grads(program, ONE, THREE, modes=("forward", "reverse"), backend=backend)
    assert np.shape(tg.grad(program, backend=backend)(ONE, THREE)) == (1,)


def contracted(a: Any, b: Any) -> Any:
    return np.sum(np.einsum("ij,jk->ik", a, b) ** 2)


def test_einsum() -> None:
    tg.check_grads(contracted, COLUMN, TABLE, wrt=0, modes=("forward", "reverse"), backend="python")
    assert np.shape(tg.grad(contracted, backend="python")(COLUMN, TABLE)) == (2, 1)


@both
def test_the_partner_of_what_einsum_spreads(backend: str) -> None:
    reason = "shapes are not aligned" if backend == "numba" else "cannot reshape array of size 4 into shape"
    with pytest.raises(BadArgument, match=reason):
        tg.grad(contracted, wrt=1, backend=backend)(COLUMN, TABLE)


def spread(x: Any, y: Any) -> Any:
    return x * y


def own(x: Any, y: Any) -> Any:
    return np.sum(spread(x, y) * y)


@both
@pytest.mark.parametrize("kind", ["linear", "pullback"])
def test_own_rules(backend: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(_RULES, spread, raising=False)
    if kind == "linear":

        @tg.linear(spread, in_="x")
        def transpose(x, y, *, out_bar):  # type: ignore[no-untyped-def]
            return out_bar * y
    else:

        @tg.pullback(spread, wrt=("x", "y"))
        def cotangents(x, y, *, out_bar):  # type: ignore[no-untyped-def]
            return out_bar * y, out_bar * x

    np.testing.assert_allclose(tg.grad(own, backend=backend)(ONE, THREE), [np.sum(THREE**2)], rtol=1e-14)
