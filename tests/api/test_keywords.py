"""Keywords that functions do not have: `argnums` of other libraries, and what is misspelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg

X = np.array([1.0, 2.0])
python: Any = {"backend": "python"}


def f(x: np.ndarray, k: float = 1.0) -> Any:
    return np.sum(k * x**2)


decorated = tg.differentiable(f, backend="python")

CHOOSING: dict[str, Callable[..., Any]] = {
    "differentiable": lambda **given: tg.differentiable(f, **given),
    "grad": lambda **given: tg.grad(f, **given),
    "value_and_grad": lambda **given: tg.value_and_grad(f, **given),
    "vjp": lambda **given: tg.vjp(f, X, **given),
    "jacobian": lambda **given: tg.jacobian(f, **given),
    "hessian": lambda **given: tg.hessian(f, **given),
    "check_grads": lambda **given: tg.check_grads(f, X, **given),
    "with_options": lambda **given: decorated.with_options(**given),
    "a call": lambda **given: decorated.grad(X, **given),
    "a call of tg.grad(f)": lambda **given: tg.grad(f, **python)(X, **given),
}
ALONG: dict[str, Callable[..., Any]] = {
    "jvp": lambda **given: tg.jvp(f, (X,), (X,), **given),
    "hvp": lambda **given: tg.hvp(f, (X,), (X,), **given),
    "linearize": lambda **given: tg.linearize(f, X, **given),
}


@pytest.mark.parametrize("call", CHOOSING.values(), ids=CHOOSING)
def test_argnums_is_wrt(call: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"has no (argument|parameter) 'argnums'\.\nwrt chooses arguments"):
        call(argnums=1)


@pytest.mark.parametrize("call", ALONG.values(), ids=ALONG)
@pytest.mark.parametrize("name", ["argnums", "wrt"])
def test_tangents_choose_arguments(call: Callable[..., Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"has no argument '{name}'\.\nIt has no wrt: pass None as the tangent"):
        call(**{name: 0})


@pytest.mark.parametrize("name", [*[name for name in CHOOSING if "call" not in name], *ALONG])
def test_other_keywords_are_refused_with_the_options(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name} has no argument 'backnd'\.\nIt has the options backend, bounds"):
        (CHOOSING | ALONG)[name](backnd="python")


def nested(x: np.ndarray, kind: str) -> Any:
    if kind == "jacobian":
        return np.sum(tg.jacobian(f, argnums=1)(x, 1.0))
    if kind == "linearize":
        return tg.linearize(f, x, argnums=1)[0]
    if kind == "vjp":
        return tg.vjp(f, x, argnums=1)[0]
    return np.sum(tg.grad(f, argnums=1)(x, 1.0))


@pytest.mark.parametrize("kind", ["jacobian", "linearize", "vjp", "grad"])
def test_argnums_in_a_differentiated_function_is_refused_at_its_place(kind: str) -> None:
    """The derivative would be that by another argument, without a word."""
    with pytest.raises(TypeError, match=r"test_keywords\.py:\d+:\d+: tg\.\w+ has no argument 'argnums'"):
        tg.grad(nested, **python)(X, kind)


def scaled(x: np.ndarray, *, power: int) -> Any:
    return np.sum(x**power)


def test_a_nested_vjp_passes_keywords_on() -> None:
    def outer(x: np.ndarray) -> Any:
        return tg.vjp(scaled, x, power=3)[0]  # type: ignore[call-overload]

    np.testing.assert_array_equal(tg.grad(outer, **python)(X), 3.0 * X**2)


def test_a_call_with_wrong_arguments_names_the_function() -> None:
    with pytest.raises(TypeError, match=r"^f\(\): too many positional arguments$"):
        decorated.grad(X, 1.0, 2.0)
    with pytest.raises(TypeError, match=r"^f\(\): missing a required argument: 'x'$"):
        decorated.grad()
    with pytest.raises(TypeError, match=r"^f\(\): got an unexpected keyword argument 'q'$"):
        decorated.grad(X, q=1)
