"""Functions that only compiled code calls: no machine code of their own, and usable by other compiled functions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numba.extending import overload

import tapegen as tg
from tapegen.backend.numba.library.callees import CalleeLibrary

X = np.array([2.0, -1.0, 3.0])


def scaled(x: Any, k: Any) -> Any:
    """Only compiled code calls it."""


@overload(scaled, strict=False)
def _scaled(x: Any, k: Any) -> Any:
    return lambda x, k: x * k


def picked(x: Any, k: Any) -> Any:
    """So it does this one, whose error contains a value."""


@overload(picked, strict=False)
def _picked(x: Any, k: Any) -> Any:
    def implementation(x: Any, k: Any) -> Any:
        if k >= len(x):
            raise ValueError("no place", k)
        return x[k]

    return implementation


@numba.njit
def of_user(x: Any, k: Any) -> Any:
    return scaled(picked(x, k), 2.0)


@pytest.mark.compiled
def test_others_call_what_was_compiled_as_a_part() -> None:
    @tg.linear(of_user, in_="x", shapes=[(3,)])
    def transpose(x: Any, k: Any, *, out_bar: Any) -> Any:
        bar = np.zeros_like(x)
        bar[k] = 2.0 * out_bar
        return bar

    found = tg.differentiable(lambda x, k: of_user(x, k) * x[0], backend="numba", cache=False)
    value, gradient = found.value_and_grad(X, 1)
    assert value == -4.0
    np.testing.assert_array_equal(gradient, [-2.0, 4.0, 0.0])
    with pytest.raises(ValueError, match="no place"):
        found(X, 7)
    assert of_user(X, 2) == 6.0  # has an entry point, though compiled on the way
    with pytest.raises(ValueError, match="no place") as raised:
        of_user(X, 9)
    assert raised.value.args == ("no place", 9)

    @numba.njit
    def again(x: Any, k: Any) -> Any:
        return scaled(x[0], 3.0) + picked(x, k)

    assert again(X, 2) == 9.0
    with pytest.raises(ValueError, match="no place") as raised:
        again(X, 5)
    assert raised.value.args == ("no place", 5)


def test_helpers_have_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    added: dict[CalleeLibrary, bool] = {}
    finalize = CalleeLibrary._finalize_final_module

    def noted(self: CalleeLibrary) -> None:
        finalize(self)
        added[self] = self._final_module in self.codegen._engine._ee._modules

    monkeypatch.setattr(CalleeLibrary, "_finalize_final_module", noted)
    found = tg.differentiable(lambda x: np.sum(np.sort(x) * np.exp(x)), backend="numba", cache=False)
    np.testing.assert_allclose(found.grad(np.log([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0] * (1.0 + np.log([1.0, 2.0, 3.0])))
    assert len(added) > 3
    assert all(library.is_part != has_code for library, has_code in added.items())
    assert not all(added.values())
