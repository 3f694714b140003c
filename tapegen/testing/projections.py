"""Derivatives along random directions beside the function itself, for all that compares both."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen import api
from tapegen.errors import BadArgument
from tapegen.frontend.values.pytree import abstract_of, flatten, unflatten
from tapegen.runtime.random_state import restore_states, states_of
from tapegen.testing.finite_differences import is_float, to_float64


@dataclass(frozen=True, slots=True)
class Projection:
    """The derivative with respect to one argument along a random direction, projected on a random cotangent.

    Attributes
    ----------
    which : int or str
        The argument.
    found : dict
        The derivative by mode ("reverse", "forward").
    along : callable
        The projected value of the plain function at a distance along the direction.
    size : float
        The sum of the absolute terms of the projection.
    value_bar : structure
        The cotangent.
    """

    which: Any
    found: dict[str, float]
    along: Callable[[float], float]
    size: float
    value_bar: Any


def checked(func: Callable[..., Any], args: Sequence[Any], wrt: Any, options: Mapping[str, Any]) -> api.Differentiable:
    """The function, differentiable with respect to `wrt` or every argument that holds floats.

    Raises
    ------
    BadArgument
        No argument holds floats.
    """
    if wrt is None:
        wrt = tuple(k for k, arg in enumerate(args) if any(is_float(leaf) for leaf in flatten(arg)))
    elif isinstance(wrt, int | str):
        wrt = (wrt,)
    if not wrt:
        raise BadArgument("no argument holds floats: there is nothing to check.", "Pass floats.")
    chosen = {**options, "wrt": tuple(wrt), "has_aux": False}  # all of the value is checked
    if isinstance(func, api.Differentiable):
        return func.with_options(**chosen)
    return api.differentiable(func, **chosen)


def projections(
    function: api.Differentiable, args: Sequence[Any], seed: int, modes: Sequence[str] = ("reverse",)
) -> Iterator[Projection]:
    """One projection for each argument of `wrt`; generators of random numbers are left as they were found."""
    rng = np.random.default_rng(seed)
    drawn = states_of(function._specialise(tuple(args), {}).leaves())
    value, pullback = function.vjp(*copy.deepcopy(args))
    value_bar = random_like(value, rng)
    gradients = pullback(value_bar)
    names = list(inspect.signature(function.python).parameters)
    wrt = function.options.wrt
    assert isinstance(wrt, tuple)
    for which, gradient in zip(wrt, gradients, strict=True):
        position = names.index(which) if isinstance(which, str) else which
        direction = random_like(args[position], rng)
        terms = [np.real(np.multiply(a, b, dtype=complex)) for a, b in _pairs(direction, gradient)]
        found = {"reverse": sum(float(np.sum(term)) for term in terms)}
        if "forward" in modes:
            tangents = [direction if k == position else None for k in range(len(args))]
            restore_states(drawn)
            _, tangent = function.jvp(copy.deepcopy(args), tangents)
            found["forward"] = _projected(value_bar, tangent)

        def along(t: float, position: int = position, direction: Any = direction) -> float:
            moved = [_in_double(arg) for arg in copy.deepcopy(args)]
            moved[position] = _moved(copy.deepcopy(moved[position]), direction, t)  # it may be another argument too
            restore_states(drawn)
            result = function.python(*moved)
            return _projected(value_bar, result)

        yield Projection(which, found, along, sum(float(np.sum(np.abs(term))) for term in terms), value_bar)
    restore_states(drawn)


def random_like(value: Any, rng: np.random.Generator) -> Any:
    """A random value of the same structure; what is not floating becomes 0."""
    template = abstract_of(value)
    return unflatten(template, [_drawn(leaf, rng) if is_float(leaf) else 0 for leaf in flatten(value)])


def is_single(leaf: Any) -> bool:
    """Whether a leaf is of single precision."""
    return np.asarray(leaf).dtype in (np.float32, np.complex64)


def _projected(value_bar: Any, value: Any) -> float:
    """The sum of the floating leaves of a value, each times its cotangent."""
    bars = {k: bar for k, bar in enumerate(flatten(value_bar)) if is_float(bar)}
    leaves = flatten(value)
    if len(leaves) == len(bars):  # a tangent has leaves for floats only
        return sum(float(np.sum(np.real(np.multiply(a, b)))) for a, b in zip(bars.values(), leaves, strict=True))
    return sum(float(np.sum(np.real(np.multiply(bar, leaves[k])))) for k, bar in bars.items())


def _in_double(value: Any) -> Any:
    """The same values; single precision converted to double."""
    leaves = [to_float64(leaf) if is_single(leaf) else leaf for leaf in flatten(value)]
    return unflatten(abstract_of(value), leaves)


def _drawn(leaf: Any, rng: np.random.Generator) -> Any:
    """Normal values of the shape of a leaf; real and imaginary parts are independent."""
    drawn = rng.normal(size=np.shape(leaf))[()] * 1.0
    return drawn + 1j * rng.normal(size=np.shape(leaf))[()] if np.iscomplexobj(leaf) else drawn


def _pairs(first: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """Leaves of two equal structures, those that are floating."""
    for a, b in zip(flatten(first), flatten(second), strict=True):
        if is_float(a) and is_float(b):
            yield a, b


def _moved(value: Any, direction: Any, t: float) -> Any:
    leaves = []
    for leaf, d in zip(flatten(value), flatten(direction), strict=True):
        if not is_float(leaf):
            leaves.append(leaf)
        elif isinstance(leaf, np.ndarray):
            leaf[...] = leaf + t * d
            leaves.append(leaf)
        else:
            leaves.append(type(leaf)(leaf + t * d))
    return unflatten(abstract_of(value), leaves)
