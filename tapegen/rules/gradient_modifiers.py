"""Gradient modifiers: identity functions that change derivatives, for the bodies of user functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tapegen.rules.helpers import require
from tapegen.rules.registry import inactive, partials, pullback

Value = TypeVar("Value")


def _same(func: Callable[..., Any], value: Any, *options: Any) -> Any:
    """A value with new arrays: tuples, lists and dicts leaf by leaf; taped values record the call."""
    if isinstance(value, dict):
        return {key: _same(func, item, *options) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [_same(func, item, *options) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, np.ndarray):
        return value.copy()
    if hasattr(value, "__array_function__"):
        return value.__array_function__(func, (type(value),), (value, *options), {})
    return value


def stop_gradient(x: Value) -> Value:
    """The value of `x`, as a constant: no derivative passes.

    Parameters
    ----------
    x : number, array, or tuple, list or dict of them
        What the derivative passes through.

    Returns
    -------
    object
        The value; arrays are copied.

    Examples
    --------
    >>> def loss(x):
    ...     return x * tg.stop_gradient(x)  # has the gradient x, not 2 * x
    """
    return _same(stop_gradient, x)


def scale_gradient(x: Value, factor: float) -> Value:
    """The value of `x`; its derivative is multiplied by `factor`, in forward and in reverse mode.

    Parameters
    ----------
    x : number, array, or tuple, list or dict of them
        What the derivative passes through.
    factor : float
        A negative one reverses the gradient.

    Returns
    -------
    object
        The value; arrays are copied.

    Examples
    --------
    >>> tg.grad(lambda x: tg.scale_gradient(x, -1.0) ** 2, backend="python")(3.0)
    -6.0
    """
    if isinstance(factor, str | tuple | list | dict | None):
        raise TypeError(f"the factor of a gradient is a number, not {factor!r}")
    return _same(scale_gradient, x, factor)


def clip_gradient(x: Value, low: float, high: float) -> Value:
    """The value of `x`; in reverse mode, each element of its cotangent is clipped to `low` ... `high`.

    Forward mode is refused: tangents are no cotangents, and there is nothing to clip.

    Parameters
    ----------
    x : number, array, or tuple, list or dict of them
        What the derivative passes through.
    low, high : float
        Bounds of the cotangent at this place, not of the gradient of the whole function.

    Returns
    -------
    object
        The value; arrays are copied.

    Examples
    --------
    >>> tg.grad(lambda x: tg.clip_gradient(x, -1.0, 1.0) ** 2, backend="python")(3.0)
    1.0
    """
    return _same(clip_gradient, x, low, high)


def print_gradient(x: Value, label: str = "gradient:") -> Value:
    """The value of `x`; prints the cotangent that arrives here, or in forward mode the tangent that passes.

    Parameters
    ----------
    x : number, array, or tuple, list or dict of them
        What the derivative passes through.
    label : str
        Printed in front of it.  It must be known when the function is derived.

    Returns
    -------
    object
        The value; arrays are copied.
    """
    return _same(print_gradient, x, label)


SURGERY: tuple[Callable[..., Any], ...] = (stop_gradient, scale_gradient, clip_gradient, print_gradient)

inactive(stop_gradient, of_complex=True)


@partials(scale_gradient, of_complex=True)
def scaled(x, factor):
    require(
        np.iscomplexobj(x) or not np.iscomplexobj(factor),
        "a complex factor would make the gradient of a real value complex.",
        "Give a real factor.",
    )
    return factor, None


@pullback(clip_gradient)
def clipped(x, low, high, *, out_bar):
    return np.clip(out_bar, low, high)


@pullback(print_gradient, of_complex=True)
def printed(x, label="gradient:", *, out_bar):
    print(label, out_bar)
    return out_bar


@printed.pushforward
def printed_pushforward(x, label="gradient:", *, x_dot):
    print(label, x_dot)
    return x_dot
