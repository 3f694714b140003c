"""Numerical check of the derivatives of a function."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from tapegen import api
from tapegen.errors import BadArgument
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import abstract_of, flatten, unflatten
from tapegen.ir.keywords import AllKeywords, refuse_keywords
from tapegen.runtime.random_state import put_back, states_of
from tapegen.runtime.tracebacks import hides_frames
from tapegen.testing.finite_differences import FLOAT32_TOLERANCE, STEP, WEIGHTS, is_float, to_float64


@hides_frames
def check_grads(
    func: Callable[..., Any],
    *args: Any,
    wrt: Any = None,
    order: int = 1,
    modes: Sequence[str] = ("reverse",),
    rtol: float = 1e-6,
    seed: int = 0,
    **options: Unpack[AllKeywords],
) -> None:
    """Compare gradients with differences of the function itself.

    The pullback of a random cotangent is projected on random directions, one per argument of `wrt`, and compared with
    central differences of eighth order of the plain Python function along that direction, with steps so small that they
    settle.  In forward mode the tangent along that direction is projected on the cotangent.  For higher orders the same
    is checked for the gradient.  Directions of complex arguments have real and imaginary parts of their own.  Where an
    argument is of single precision, differences are those of the function of the same values in double precision, and
    the accepted error is at least 2e-4.

    Parameters
    ----------
    func : callable
        Any Python function, or a differentiable one, which keeps its options but for `wrt`.
    *args
        Where to check; arguments that the function writes are copied.
    wrt : int, str or sequence, optional
        Arguments to check; by default every argument that holds floats.
    order : int
        2 also checks the derivatives of the gradient, and so on.
    modes : sequence of {"forward", "reverse"}
        Which modes are checked, at every order.
    rtol : float
        Accepted error relative to the size of the terms of the projection.
    seed : int
        Seed of the random directions.
    **options
        Options of `differentiable`, before those that the function has.

    Raises
    ------
    AssertionError
        The gradient is wrong; the message contains the argument and both values.
    """
    refuse_keywords("check_grads", options)
    if not modes or not set(modes) <= {"forward", "reverse"}:
        raise BadArgument(f"modes={modes!r} are unknown.", 'Use "forward", "reverse", or both.')
    if wrt is None:
        wrt = tuple(k for k, arg in enumerate(args) if any(is_float(leaf) for leaf in flatten(arg)))
    elif isinstance(wrt, int | str):
        wrt = (wrt,)
    if not wrt or order < 1:
        raise BadArgument(
            f"order={order} checks nothing." if wrt else "no argument holds floats: there is nothing to check.",
            "Ask for order 1 or more." if wrt else "Pass floats.",
        )
    chosen: dict[str, Any] = {**options, "wrt": tuple(wrt), "has_aux": False}  # all of the value is checked
    if isinstance(func, api.Differentiable):
        differentiable = func.with_options(**chosen)
    else:
        differentiable = api.differentiable(func, **chosen)
    if any(_is_single(leaf) for arg in args for leaf in flatten(arg)):
        rtol = max(rtol, FLOAT32_TOLERANCE)
    rng = np.random.default_rng(seed)
    drawn = states_of(differentiable._specialise(args, {}).leaves())
    value, pullback = differentiable.vjp(*copy.deepcopy(args))
    value_bar = _random_like(value, rng)
    gradients = pullback(value_bar)
    names = list(inspect.signature(differentiable.python).parameters)
    for which, gradient in zip(wrt, gradients, strict=True):
        position = names.index(which) if isinstance(which, str) else which
        direction = _random_like(args[position], rng)
        terms = [np.real(np.multiply(a, b, dtype=complex)) for a, b in _pairs(direction, gradient)]
        found = {"reverse": sum(float(np.sum(term)) for term in terms)}
        if "forward" in modes:
            tangents = [direction if k == position else None for k in range(len(args))]
            put_back(drawn)
            _, tangent = differentiable.jvp(copy.deepcopy(args), tangents)
            found["forward"] = _projected(value_bar, tangent)

        def along(t: float, position: int = position, direction: Any = direction) -> float:
            moved = [_in_double(arg) for arg in copy.deepcopy(args)]
            moved[position] = _moved(copy.deepcopy(moved[position]), direction, t)  # it may be another argument too
            put_back(drawn)
            result = differentiable.python(*moved)
            return _projected(value_bar, result)

        expected, doubt, last_digit = _slope(along)
        scale = sum(float(np.sum(np.abs(term))) for term in terms) + abs(expected) + 1e-8
        if doubt > 1e-3 * scale:
            raise AssertionError(
                f"gradient with respect to {which!r}: differences do not settle ({expected!r} to within {doubt!r}); "
                "is this a point where the function has a kink or a jump?"
            )
        for mode in modes:
            if not abs(found[mode] - expected) <= rtol * scale + doubt + last_digit:
                raise AssertionError(
                    f"gradient with respect to {which!r} ({mode} mode): {found[mode]!r} along a direction, differences "
                    f"give {expected!r}"
                )
    put_back(drawn)
    if order > 1:
        params = ", ".join(f"x{k}" for k in range(len(args)))
        text = f"def cotangents({params}):\n    return function.vjp({params})[1](value_bar)\n"
        cotangents = function_from_text(text, {"function": differentiable, "value_bar": value_bar})
        higher = api.Differentiable(cotangents, differentiable.options)
        places = tuple(names.index(which) if isinstance(which, str) else which for which in wrt)
        check_grads(higher, *args, wrt=places, order=order - 1, modes=modes, rtol=rtol, seed=seed + 1)


def _slope(along: Callable[[float], float]) -> tuple[float, float, float]:
    """The derivative at 0 from differences with decreasing steps, and the difference of the best two of them.

    The last number is the effect of the last digit of the function at the widest step.
    """
    estimates = []
    for step in (STEP, STEP / 8, STEP / 64, STEP / 512):
        estimates.append(sum(w * (along(k * step) - along(-k * step)) for k, w in WEIGHTS) / step)
        if len(estimates) > 1 and abs(estimates[-1] - estimates[-2]) <= 1e-9 * abs(estimates[-1]):
            break
    changes = [(abs(b - a), b) for a, b in itertools.pairwise(estimates)]
    doubt, slope = min(changes)
    return slope, doubt, 2.0**-52 * abs(along(0.0)) / STEP


def _projected(value_bar: Any, value: Any) -> float:
    """The sum of the floating leaves of a value, each times its cotangent."""
    bars = {k: bar for k, bar in enumerate(flatten(value_bar)) if is_float(bar)}
    leaves = flatten(value)
    if len(leaves) == len(bars):  # a tangent has leaves for floats only
        return sum(float(np.sum(np.real(np.multiply(a, b)))) for a, b in zip(bars.values(), leaves, strict=True))
    return sum(float(np.sum(np.real(np.multiply(bar, leaves[k])))) for k, bar in bars.items())


def _is_single(leaf: Any) -> bool:
    return np.asarray(leaf).dtype in (np.float32, np.complex64)


def _in_double(value: Any) -> Any:
    """The same values; single precision converted to double."""
    leaves = [to_float64(leaf) if _is_single(leaf) else leaf for leaf in flatten(value)]
    return unflatten(abstract_of(value), leaves)


def _random_like(value: Any, rng: np.random.Generator) -> Any:
    """A random value of the same structure; what is not floating becomes 0."""
    template = abstract_of(value)
    return unflatten(template, [_drawn(leaf, rng) if is_float(leaf) else 0 for leaf in flatten(value)])


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
