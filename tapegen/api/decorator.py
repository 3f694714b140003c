"""`differentiable`: the decorator, with its types for functions, methods and functions that return more."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, Unpack, overload

from tapegen.api.differentiable_function import Aux, Differentiable, DifferentiableWithAux, Objective, P, R, made
from tapegen.errors import frames_of_tapegen
from tapegen.frontend.source.callables import unwrap
from tapegen.ir.protocols import refuses
from tapegen.pipeline.options import Options, Wrt
from tapegen.runtime.tracebacks import hides_frames
from tapegen.settings import Backend, Keywords, refuse_keywords


class _ClassMethod(classmethod):
    """A differentiable class method: bound to a class it still has derivatives, in every version of Python."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.__func__.__get__(type(instance) if owner is None else owner)


class _Unbound(Protocol[P, R]):
    """A static method, or a method of a class: an object that it is read from is not passed."""

    def __get__(self, instance: Any, owner: type | None = None) -> Differentiable[P, R]: ...


class Decorator(Protocol):
    """What `differentiable` with options returns."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a static method is callable
        self, func: staticmethod[P, R] | classmethod[Any, P, R], /
    ) -> _Unbound[P, R]: ...
    @overload
    def __call__(self, func: Callable[P, R], /) -> Differentiable[P, R]: ...


class DecoratorWithAux(Protocol):
    """What `differentiable(has_aux=True)` returns."""

    def __call__(self, func: Callable[P, tuple[Objective, Aux]], /) -> DifferentiableWithAux[P, Objective, Aux]: ...


@overload
def differentiable(
    func: Callable[P, tuple[Objective, Aux]], *, has_aux: Literal[True], wrt: Wrt = 0, **options: Unpack[Keywords]
) -> DifferentiableWithAux[P, Objective, Aux]: ...
@overload
def differentiable(
    func: None = None, *, has_aux: Literal[True], wrt: Wrt = 0, **options: Unpack[Keywords]
) -> DecoratorWithAux: ...
@overload
def differentiable(  # type: ignore[overload-overlap]  # a static method is callable
    func: staticmethod[P, R] | classmethod[Any, P, R],
    *,
    has_aux: Literal[False] = False,
    wrt: Wrt = 0,
    **options: Unpack[Keywords],
) -> _Unbound[P, R]: ...
@overload
def differentiable(
    func: Callable[P, R], *, has_aux: Literal[False] = False, wrt: Wrt = 0, **options: Unpack[Keywords]
) -> Differentiable[P, R]: ...
@overload
def differentiable(
    func: None = None, *, has_aux: Literal[False] = False, wrt: Wrt = 0, **options: Unpack[Keywords]
) -> Decorator: ...
@overload
def differentiable(
    func: Callable[P, Any] | None = None, *, has_aux: bool, wrt: Wrt = 0, **options: Unpack[Keywords]
) -> Any: ...
@hides_frames
def differentiable(
    func: Any = None,
    *,
    wrt: Wrt = 0,
    has_aux: bool = False,
    backend: Backend = "auto",
    boundscheck: bool = True,
    fastmath: bool = False,
    cache: bool = True,
    signatures: Sequence[str] = (),
    parallel: bool = False,
    memory: str | int | float | None = None,
    **_: Any,
) -> Any:
    """Give a Python function derivatives.

    Parameters
    ----------
    func : callable
        A function of numbers, NumPy arrays and structures of them.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to, by position or name (`"self.k"` names an attribute, `"args.0"` the
        first of `*args`).  Where a position exceeds the parameters, all positions count the arguments of the call:
        for `f(x, *args)`, `wrt=(0, 1, 2)` are `x` and the first two of `args`, `wrt=1` is all of `args`.
    has_aux : bool
        The function returns `(objective, anything)` and only the objective is differentiated.
    backend : {"auto", "numba", "python"}
        "numba" compiles; "python" runs the readable source in CPython; "auto" compiles where every call can be
        compiled and the code is not so long that compiling takes minutes, and warns once where it does not.
    boundscheck : bool
        Check indices at run time where they are not proved.
    fastmath : bool
        Allow the compiler to reorder sums and to assume that no NaN occurs.
    cache : bool
        Store compiled code on disk, in a directory of the user, for other processes; see docs/cache.md.
    signatures : sequence of str
        Argument types (`"f8[:], f8, n=3"`) for which the command line writes derivatives to files.
    parallel : bool
        Run long loops of compiled code in several threads where their iterations are independent but for sums, those of
        `numba.prange` included; see docs/howto/threads.md.  Sums are then added up in chunks, which do not depend on
        the number of threads (`tg.config.threads`).
    memory : str, int or float, optional
        What gradients may record: text (`"2GB"`, `"500MB"`), bytes, or a fraction of the memory that is free; half of
        that by default.  Where a loop would record more, it is checkpointed: see docs/checkpoints.md.

    Returns
    -------
    Differentiable
        Call it like the function; `.grad`, `.value_and_grad`, `.vjp` and `.inspect` accept the same arguments, `.jvp`
        accepts them as one sequence and their tangents as another.

    Raises
    ------
    SourceUnavailable
        There is no source text of the function, and no rule for it.
    TapegenError
        By calls: the function cannot be differentiated.  The message holds the place, the reason and advice.

    Examples
    --------
    >>> @tg.differentiable(wrt=("x", "k"), backend="python")
    ... def energy(x, k):
    ...     return 0.5 * k * x**2
    >>> energy(2.0, 3.0), energy.grad(2.0, 3.0)
    (6.0, (6.0, 2.0))
    """
    refuse_keywords("differentiable", _)
    options = Options(wrt, has_aux, backend, boundscheck, fastmath, cache, signatures, parallel, memory)

    def decorate(function: Any) -> Any:
        if isinstance(function, Differentiable):
            warnings.warn(f"{function!r} is differentiable already", UserWarning, stacklevel=frames_of_tapegen())
            return function
        if isinstance(function, staticmethod):
            return staticmethod(decorate(function.__func__))
        if isinstance(function, classmethod):
            return _ClassMethod(decorate(function.__func__))
        if isinstance(function, property):
            return property(decorate(function.fget), function.fset, function.fdel, function.__doc__)
        unwrap(function)  # refuse what has no Python source here, at the user's decorator
        return made(function, options)

    return hides_frames(decorate) if func is None else decorate(func)


refuses(
    differentiable,
    "tg.differentiable is called inside of a differentiated function.",
    "Take the derivative directly, tg.grad(f)(x); or decorate f outside of the function.",
)
