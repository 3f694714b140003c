"""Implicit differentiation: the common part of rules for solvers, integrals and differential equations.

The callback of a solver becomes a separate Python function (`closed`), whose arguments include all variables that it
reads of the surrounding program.  The solver then is one operation on these, which scipy computes, and its rule follows
from theory (implicit function theorem, adjoint equations): no derivative passes through the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.ir.types import BOOL, TupleOf
from tapegen.rules.helpers import compile_time
from tapegen.rules.registry import pullback

Func = TypeVar("Func", bound=Callable[..., Any])

# ---- what the compiler provides --------------------------------------------------------------------------------------


def _in_programs_only(*args: Any, **options: Any) -> NoReturn:
    raise NotDifferentiable("the derivative of what a solver finds is taken in generated code only.")


def jacobian(func: Callable[..., Any], wrt: Any = 0) -> Any:
    """`tg.jacobian`."""
    _in_programs_only(func, wrt)


def grad(func: Callable[..., Any], wrt: Any = 0) -> Any:
    """`tg.grad`."""
    _in_programs_only(func, wrt)


def vjp(func: Callable[..., Any], *args: Any, wrt: Any = 0) -> Any:
    """`tg.vjp`."""
    _in_programs_only(func, *args, wrt=wrt)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """`tg.jvp`."""
    _in_programs_only(func, primals, tangents)


def closed(func: Callable[..., Any], *args: Any) -> Any:
    """A function of the program as a separate Python function without free variables (closure conversion).

    Returns
    -------
    function : callable
        Takes the arguments, then the free variables of `func`: floating values, then others.
    floats, others : tuple
        The values of these variables.
    rank : int
        The number of axes of its result.
    """
    _in_programs_only(func, *args)


def primitive(like: Callable[..., Any], *, part_of: str = "") -> Callable[[Func], Func]:
    """Declare the result type of a function, which is then not run on prototypes.

    `like` takes the types of the arguments (values where they are known) and returns the type of the result.
    `part_of` names what users call for it, in messages.
    """

    def mark(func: Func) -> Func:
        func.type_like = like  # type: ignore[attr-defined]
        func.part_of = part_of  # type: ignore[attr-defined]
        return func

    return mark


class Found:
    """The fields of a result of scipy; only they may be used."""

    __tapegen_inside__ = "what a solver of scipy returns"
    __tapegen_advice__ = (
        "Leave it out: x, fun and the like are there, but no counts and messages of the solver. "
        "To see those, call the solver outside of the differentiated function."
    )

    def __init__(self, **fields):
        self.__dict__.update(fields)


# ---- solutions of equations ------------------------------------------------------------------------------------------


@compile_time
def behind(first: int, count: int) -> tuple[int, ...]:
    """The positions of `count` arguments, starting with `first`."""
    return tuple(range(first, first + count))


@compile_time
def nothing(count: int) -> tuple[None, ...]:
    """No tangent for each of `count` arguments."""
    return (None,) * count


@primitive(
    lambda run, kind, function, floats, others, slope, slope_reads, start, options: TupleOf((start, BOOL)),
    part_of="a solver of scipy.optimize",
)
def solution(run, kind, function, floats, others, slope, slope_reads, start, options):
    """The solution that `run` finds, and whether it has converged.

    Parameters
    ----------
    run : callable
        Takes the function, its slope or None, the start and the options.
    kind : {"root", "fixed point", "minimum"}
        The kind of solution.
    function, floats, others
        See `closed`.
    slope, slope_reads
        The user's Jacobian or gradient, or None, and its free variables.
    start, options
        Arguments of `run`.
    """

    def called(x):
        return function(x, *floats, *others)

    def sloped(x):
        return slope(x, *slope_reads)

    return run(called, None if slope is None else sloped, start, options)


@pullback(solution, wrt="floats")
def solution_pullback(run, kind, function, floats, others, slope, slope_reads, start, options, *, out, out_bar):
    """The implicit function theorem: the equation continues to hold when parameters change."""

    def holds(x, *reads):
        return equation(kind, function, x, reads)

    slopes = jacobian(holds)(out[0], *floats, *others)
    found, pull = vjp(holds, out[0], *floats, *others, wrt=behind(1, len(floats)))
    return pull(-where_solved(out[0], solved(slopes, found), solved_back(slopes, out_bar[0])))


@solution_pullback.pushforward
def solution_pushforward(run, kind, function, floats, others, slope, slope_reads, start, options, *, out, floats_dot):
    def holds(x, *reads):
        return equation(kind, function, x, reads)

    slopes = jacobian(holds)(out[0], *floats, *others)
    found, moved = jvp(holds, (out[0], *floats, *others), (None, *floats_dot, *nothing(len(others))))
    return where_solved(out[0], solved(slopes, found), solved(slopes, -moved)), None


def equation(kind, function, x, reads):
    """The residual, which is zero at a solution."""
    if kind == "fixed point":
        return x - function(x, *reads)
    if kind == "minimum":
        return grad(function)(x, *reads)
    return function(x, *reads)


def where_solved(x, step, value):
    """NaN where Newton's step is large: such a point is no solution, and its derivative is unknown."""
    return np.where(np.max(np.abs(step)) <= 1e-3 * (1.0 + np.max(np.abs(x))), value, np.nan)


def solved(matrix, vector):
    """The solution of a linear system, or of one equation."""
    if np.ndim(matrix) == 0:
        return vector / matrix
    return np.linalg.solve(matrix, vector)


def solved_back(matrix, vector):
    """The solution of the transposed system."""
    if np.ndim(matrix) == 0:
        return vector / matrix
    return np.linalg.solve(matrix.T, vector)


# ---- several values as one vector ------------------------------------------------------------------------------------


def flattened(parts):
    """The elements of arrays and scalars as one vector."""
    rows = (np.zeros(0),)
    for part in parts:
        rows = (*rows, np.ravel(part))
    return np.concatenate(rows)


def parted(row, like):
    """The elements of one vector in the shapes of other arrays and scalars."""
    parts = ()
    start = 0
    for part in like:
        stop = start + np.size(part)
        if np.ndim(part) == 0:
            parts = (*parts, row[start])
        else:
            parts = (*parts, np.reshape(row[start:stop], np.shape(part)))
        start = stop
    return parts


def as_args(args):
    """`args=` as a tuple: a tuple of arguments, or a single one."""
    if args is None:
        return ()
    if isinstance(args, tuple):
        return args
    return (args,)
