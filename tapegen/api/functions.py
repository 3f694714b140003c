"""Functions of functions: gradients, pullbacks and tangents of any Python function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Literal, Unpack, overload

from tapegen.api.differentiable_function import (
    Aux,
    Differentiable,
    DifferentiableWithAux,
    Objective,
    P,
    Pullback,
    R,
    with_options,
)
from tapegen.errors import BadArgument
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import StaticValue
from tapegen.ir.names import NameSupply
from tapegen.ir.protocols import marks
from tapegen.pipeline.nested import PIPELINE
from tapegen.pipeline.options import Wrt
from tapegen.runtime.tracebacks import hides_frames
from tapegen.settings import DIRECTIONS, AllKeywords, Keywords, refuse_keywords


@overload
def grad(
    func: Callable[P, tuple[Objective, Aux]], wrt: Wrt = 0, *, has_aux: Literal[True], **options: Unpack[Keywords]
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    func: Callable[P, Any], wrt: Wrt = 0, *, has_aux: bool = False, **options: Unpack[Keywords]
) -> Callable[P, Any]: ...
@marks("grad", PIPELINE)
@hides_frames
def grad(func: Callable[..., Any], wrt: Wrt = 0, **options: Any) -> Any:
    """A function that returns the gradient of `func`.

    Parameters
    ----------
    func : callable
        A function that returns one number.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to, by position or name.
    **options
        Options of `differentiable`.

    Returns
    -------
    callable
        Accepts the arguments of `func` and returns the gradient, in the structure of `wrt`; with `has_aux`,
        `(gradient, aux)`.

    Examples
    --------
    >>> tg.grad(lambda x, y: x * y**2, wrt=("x", "y"), backend="python")(2.0, 3.0)
    (9.0, 12.0)
    """
    refuse_keywords("grad", options)
    return with_options(func, wrt, options).grad


@marks("value_and_grad", PIPELINE)
@hides_frames
def value_and_grad(func: Callable[P, R], wrt: Wrt = 0, **options: Unpack[AllKeywords]) -> Callable[P, tuple[R, Any]]:
    """A function that returns the value and the gradient of `func`.

    Parameters
    ----------
    func : callable
        A function that returns one number.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to, by position or name.
    **options
        Options of `differentiable`.

    Returns
    -------
    callable
        Accepts the arguments of `func` and returns `(value, gradient)`; with `has_aux`, `((value, aux), gradient)`.

    Examples
    --------
    >>> tg.value_and_grad(lambda x: x**3, backend="python")(2.0)
    (8.0, 12.0)
    """
    refuse_keywords("value_and_grad", options)
    return with_options(func, wrt, options).value_and_grad


@overload
def vjp(
    func: DifferentiableWithAux[..., Objective, Aux],
    *args: Any,
    wrt: Wrt = 0,
    wrt_out: str | Sequence[str] = (),
    **options: Unpack[Keywords],
) -> tuple[Objective, Pullback, Aux]: ...
@overload
def vjp(
    func: Callable[..., tuple[Objective, Aux]],
    *args: Any,
    wrt: Wrt = 0,
    has_aux: Literal[True],
    **options: Unpack[Keywords],
) -> tuple[Objective, Pullback, Aux]: ...
@overload
def vjp(
    func: Callable[..., None], *args: Any, wrt: Wrt = 0, wrt_out: str | Sequence[str], **options: Unpack[Keywords]
) -> tuple[Any, Pullback]: ...
@overload
def vjp(
    func: Callable[..., R], *args: Any, wrt: Wrt = 0, has_aux: Literal[False] = False, **options: Unpack[Keywords]
) -> tuple[R, Pullback]: ...
@marks("vjp", PIPELINE)
@hides_frames
def vjp(func: Callable[..., Any], *args: Any, wrt: Wrt = 0, wrt_out: str | Sequence[str] = (), **options: Any) -> Any:
    """Value of `func` at `args`, and its pullback.

    Parameters
    ----------
    func : callable
        A function of numbers, arrays and structures of them.
    *args
        Its arguments.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to: their values on entry.
    wrt_out : str or sequence of str
        For a function that returns nothing: the arrays among its arguments that it writes its results into.  They are
        the value then, and the pullback accepts the cotangents of their final contents.
    **options
        Options of `differentiable`.

    Returns
    -------
    value, pullback
        See `Differentiable.vjp`.

    Examples
    --------
    >>> value, pullback = tg.vjp(lambda x, y: x * y, 2.0, 3.0, wrt=(0, 1), backend="python")
    >>> value, pullback(1.0)
    (6.0, (3.0, 2.0))
    """
    refuse_keywords("vjp", options)
    if wrt_out:
        if not _returns_nothing(with_options(func, wrt, options), args):
            raise BadArgument("wrt_out is for functions that return nothing.", "Return these arrays as well.")
        func = _outcome(func, len(args), wrt_out if isinstance(wrt_out, str) else tuple(wrt_out))
    return with_options(func, wrt, options).vjp(*args)


@overload
def jvp(  # type: ignore[overload-overlap]  # the options of such a function say what it returns
    func: DifferentiableWithAux[..., Objective, Aux],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    **options: Unpack[Keywords],
) -> tuple[Objective, Any, Aux]: ...
@overload
def jvp(
    func: Callable[..., tuple[Objective, Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: Literal[True],
    **options: Unpack[Keywords],
) -> tuple[Objective, Any, Aux]: ...
@overload
def jvp(
    func: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: Literal[False] = False,
    **options: Unpack[Keywords],
) -> tuple[R, Any]: ...
@marks("jvp", PIPELINE)
@hides_frames
def jvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **options: Any) -> Any:
    """Value of `func` at `primals`, and its derivative along `tangents`.

    Parameters
    ----------
    func : callable
        A function of numbers, arrays and structures of them.
    primals : sequence
        Its positional arguments.
    tangents : sequence
        A direction for each of them, in its structure; None for a constant argument.
    **options
        Options of `differentiable`.

    Returns
    -------
    value, tangent
        See `Differentiable.jvp`.

    Examples
    --------
    >>> tg.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, None), backend="python")
    (6.0, 3.0)
    """
    refuse_keywords("jvp", options, DIRECTIONS)
    return with_options(func, 0, options).jvp(primals, tangents)


@marks("jvp", PIPELINE)
def along(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **options: Any) -> Any:
    """`jvp` without the value: None is in its place, or, inside functions, what `jvp` returns."""
    function = with_options(func, 0, options)
    found = function._inline_cache.lookup("tangent", primals, tangents, {})
    return function._along("tangent", primals, tangents, {}) if found is None else found


def _returns_nothing(function: Differentiable[..., Any], args: tuple[Any, ...]) -> bool:
    output = function._specialise(args, {}).program.lowered.output
    return isinstance(output, StaticValue) and output.value is None


@functools.lru_cache(maxsize=256)
def _outcome(func: Callable[..., Any], count: int, names: str | tuple[str, ...]) -> FunctionType:
    """A function of the first `count` parameters that calls this one, and returns some of them afterwards."""
    kinds = {name: parameter.kind for name, parameter in inspect.signature(func).parameters.items()}
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [name for name, kind in kinds.items() if kind in plain][:count]
    for name in (names,) if isinstance(names, str) else names:
        if name not in given:
            advice = f"Name some of {', '.join(given)}."
            raise BadArgument(f"wrt_out names {name!r}, which is no argument of this call.", advice)
    collected = [f"*{name}" for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL]
    arguments = ", ".join((*given, *collected))
    returned = names if isinstance(names, str) else f"({', '.join(names)},)"
    title = getattr(func, "__name__", "")
    supply = NameSupply(kinds)
    called = supply.fresh("function")
    head = f"def {title if title.isidentifier() else supply.fresh('outcome')}({arguments}):"
    text = f"{head}\n    {called}({arguments})\n    return {returned}\n"
    return function_from_text(text, {called: func})
