"""Pictures of derivatives: what is recorded, and how well differences agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegen import api
from tapegen.errors import BadArgument, Span
from tapegen.pipeline.inspection import AvailableValue
from tapegen.runtime.bound_call import inspected
from tapegen.testing.projections import checked, projections

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check", "memory"]

_WIDEST, _NARROWEST = -1, -12


def memory(func: Callable[..., Any], /, *args: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
    """Draw the bytes on tapes, one bar for each loop that records.

    The forward sweep runs once where a loop records whose number of iterations is not known on entry.

    Parameters
    ----------
    func : callable
        A function, or a differentiable one.
    *args, **kwargs
        Arguments of a call.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With one segment for each recorded value, labeled by its name.
    """
    axes = _axes(ax)
    function = func if isinstance(func, api.Differentiable) else api.differentiable(func)
    call = function._specialise(args, kwargs)
    report = inspected(call.program, call.leaves()).report
    recorded = report.recorded
    known = {value.tape: value.bytes for value in recorded if value.bytes is not None}
    sizes = known if len(known) == len(recorded) else call.recorded_bytes()
    loops = sorted({_label(value) for value in recorded})
    filled = dict.fromkeys(loops, 0)
    for value in recorded:
        loop, size = _label(value), sizes[value.tape]
        assert size is not None
        axes.barh(loops.index(loop), size, left=filled[loop], label=value.name, edgecolor="white", linewidth=0.8)
        filled[loop] += size
    axes.set_yticks(range(len(loops)), [label for _, label in loops])
    axes.invert_yaxis()  # loops from top to bottom, as in the source
    axes.set_xlabel("bytes on tapes")
    axes.set_title(f"{report.function}: {sum(filled.values()):,} bytes recorded")
    if recorded:
        axes.legend()
    return axes


def check(
    func: Callable[..., Any], /, *args: Any, wrt: Any = None, seed: int = 0, ax: Axes | None = None, **options: Any
) -> Axes:
    """Draw the difference of central differences from the gradient against their step.

    Where the gradient is right, the error falls with the square of the step until rounding takes over, and rises again.
    A line that stays level shows a wrong gradient, or a kink.

    Parameters
    ----------
    func : callable
        Any Python function, or a differentiable one, which keeps its options but for `wrt`.
    *args
        Where to check; arguments that the function writes are copied.
    wrt : int, str or sequence, optional
        Arguments to check; by default every argument that holds floats.
    seed : int
        Seed of the random directions, one for each argument.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    **options
        Options of `differentiable`.

    Returns
    -------
    matplotlib.axes.Axes
        With one line for each argument, and the slope of the truncation error.
    """
    axes = _axes(ax)
    function = checked(func, args, wrt, options)
    steps = np.logspace(_WIDEST, _NARROWEST, 3 * (_WIDEST - _NARROWEST) + 1)
    widest = 0.0
    for projection in projections(function, args, seed):
        with np.errstate(all="ignore"):
            slopes = np.array([_central(projection.along, step) for step in steps])
        scale = projection.size + 1e-300
        errors = np.abs(slopes - projection.found["reverse"]) / scale
        widest = np.fmax(widest, errors[0])
        axes.loglog(steps, np.maximum(errors, 1e-17), marker=".", label=_name(function, projection.which))
    axes.loglog(steps, widest * (steps / steps[0]) ** 2, color="gray", linestyle=":", label="step²")
    axes.set_ylim(bottom=1e-18)
    axes.set_xlabel("step")
    axes.set_ylabel("relative error of central differences")
    axes.set_title(f"gradient of {getattr(function.python, '__name__', 'a function')}")
    axes.legend()
    return axes


def _central(along: Callable[[float], float], step: float) -> float:
    """The central difference; NaN, which is not drawn, where the step leaves the domain of the function."""
    try:
        return (along(step) - along(-step)) / (2.0 * step)
    except (ValueError, ArithmeticError):
        return np.nan


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        if not hasattr(ax, "barh"):
            raise BadArgument(f"ax is of type {type(ax).__name__}, and draws nothing.", "Pass one of plt.subplots().")
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib ({error}): pip install 'tapegen[plot]'") from error
    return pyplot.subplots(layout="constrained")[1]


def _label(value: AvailableValue) -> tuple[int, str]:
    """The loop of a recorded value: its line for the order, and its text."""
    loop: Span | None = value.loop
    return (0, "outside of loops") if loop is None else (loop.line, f"{loop.line}: {loop.text().rstrip(':')}")


def _name(function: api.Differentiable, which: Any) -> str:
    """The name of an argument."""
    return which if isinstance(which, str) else [*function.__signature__.parameters][which]
