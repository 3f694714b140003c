"""Numerical check of the derivatives of a function."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from tapegen import api
from tapegen.errors import BadArgument
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import flatten
from tapegen.runtime.foreign_arrays import with_numpy
from tapegen.runtime.tracebacks import hides_frames
from tapegen.settings import AllKeywords, refuse_keywords
from tapegen.testing.finite_differences import FLOAT32_TOLERANCE, STEP, WEIGHTS
from tapegen.testing.projections import checked, is_single, projections


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

    Examples
    --------
    >>> tg.check_grads(lambda x: x**3, 2.0, order=2, modes=("forward", "reverse"), backend="python")
    """
    refuse_keywords("check_grads", options)
    if not modes or not set(modes) <= {"forward", "reverse"}:
        raise BadArgument(f"modes={modes!r} are unknown.", 'Use "forward", "reverse", or both.')
    if order < 1:
        raise BadArgument(f"order={order} checks nothing.", "Ask for order 1 or more.")
    args = tuple(with_numpy(arg, f"args[{k}]") for k, arg in enumerate(args))
    function = checked(func, args, wrt, options)
    if any(is_single(leaf) for arg in args for leaf in flatten(arg)):
        rtol = max(rtol, FLOAT32_TOLERANCE)
    for projection in projections(function, args, seed, modes):
        which, found = projection.which, projection.found
        expected, doubt, last_digit = _slope(projection.along)
        scale = projection.size + abs(expected) + 1e-8
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
    if order > 1:
        params = ", ".join(f"x{k}" for k in range(len(args)))
        text = f"def cotangents({params}):\n    return function.vjp({params})[1](value_bar)\n"
        cotangents = function_from_text(text, {"function": function, "value_bar": projection.value_bar})
        higher = api.Differentiable(cotangents, function.options)
        names = list(inspect.signature(function.python).parameters)
        wrt = function.options.wrt
        assert isinstance(wrt, tuple)
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
