"""How awkward programs are judged: by plain Python, and by numerical gradients."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import TapegenError
from tests.oracle import numerical_gradient

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.compiled)]
both = pytest.mark.parametrize("backend", BACKENDS)
"""A test of the generated text and of its compiled form."""


def fresh(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that may be written into; what is read-only stays what it is."""
    return tuple(arg if isinstance(arg, np.ndarray) and not arg.flags.writeable else copy.deepcopy(arg) for arg in args)


def right(func: Callable[..., Any], *args: Any, backend: str, wrt: int | tuple[int, ...] = 0, **options: Any) -> Any:
    """Value, gradient and what is left in the arguments are those of plain Python; returns the derived function."""
    derived = differentiable(func, backend=backend, wrt=wrt, **options)
    for call in (derived, lambda *given: derived.value_and_grad(*given)[0]):
        given, left = fresh(args), fresh(args)
        same(call(*given), func(*left))
        same(given, left)
    slots = (wrt,) if isinstance(wrt, int) else wrt
    gradients = derived.grad(*fresh(args))
    estimate = numerical_gradient(func, args, paths=[(slot,) for slot in slots])
    for slot, gradient in zip(slots, (gradients,) if isinstance(wrt, int) else gradients, strict=True):
        assert np.shape(gradient) == np.shape(args[slot])
        np.testing.assert_allclose(gradient, estimate.value[(slot,)], rtol=1e-7, atol=1e-9)
    return derived


def same(value: Any, expected: Any) -> None:
    """The same value up to rounding, of the same kind."""
    if isinstance(expected, tuple):
        assert isinstance(value, tuple)
        for one, other in zip(value, expected, strict=True):
            same(one, other)
        return
    assert isinstance(value, type(expected))
    if isinstance(expected, np.ndarray):
        assert value.dtype == expected.dtype
        assert value.shape == expected.shape
    if isinstance(expected, np.ndarray | np.number | float | int):
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-300)
    else:
        assert value == expected


def refused(
    func: Callable[..., Any], *args: Any, error: type[TapegenError], match: str, at: str | None = None, **options: Any
) -> None:
    """Refused by the value and by the gradient, before any number, with the place, the reason and advice."""
    for how in ("value_and_grad", "grad", "vjp", "inspect"):
        with pytest.raises(error, match=match) as caught:
            getattr(differentiable(func, **options), how)(*args)
        assert caught.value.advice
        if at is not None:
            assert caught.value.span is not None
            assert at in caught.value.span.source_line()


def raises_as_python(func: Callable[..., Any], *args: Any, backend: str, at: str | None = None) -> None:
    """The exception of plain Python: type, text, the user's line in a note, and arguments as Python leaves them."""
    left = fresh(args)
    with pytest.raises(Exception) as expected:  # noqa: PT011
        func(*left)
    for how in ("__call__", "value_and_grad"):
        derived = differentiable(func, backend=backend)
        with pytest.raises(type(expected.value)) as caught:
            getattr(derived, how)(*(given := fresh(args)))
        assert type(caught.value) is type(expected.value)
        assert str(caught.value) == str(expected.value)
        for mine, theirs in zip(given, left, strict=True):
            if isinstance(mine, np.ndarray):
                np.testing.assert_array_equal(mine, theirs)
        if at is not None and not (how == "__call__" and backend == "python"):
            notes = "\n".join(getattr(caught.value, "__notes__", []))
            assert at in notes, notes
            assert f"{inspect.getsourcefile(func)}:" in notes
