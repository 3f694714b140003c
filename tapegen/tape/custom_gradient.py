"""Custom gradients: functions with gradients of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast, overload

import numpy as np

from tapegen.errors import BadArgument
from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.runtime.tracebacks import hides_frames
from tapegen.tape.engine import pytree
from tapegen.tape.engine.state import STATE, Call, suspended
from tapegen.tape.gradient_tape import GradientTape
from tapegen.tape.tensors.closures import Closure, recorded
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh, operand
from tapegen.tape.tensors.variable import Variable, convert_to_tensor, identity

P = ParamSpec("P")
R = TypeVar("R")


class _Watcher:
    """Notes which trainable variables are read."""

    def __init__(self) -> None:
        self.tracked: set[int] = set()
        self.variables: dict[int, Variable] = {}

    def note(self, call: Call) -> None:
        """Nothing is recorded."""

    note_wide = note

    def note_plain(self, *call: Any) -> None:
        """Nothing is recorded."""

    def cut(self, how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
        """Nothing is recorded."""

    def read(self, variable: Variable) -> None:
        """Note the variable."""
        if variable.trainable:
            self.variables.setdefault(variable._id, variable)


@contextmanager
def _watching() -> Iterator[_Watcher]:
    watcher = _Watcher()
    before = STATE.active
    STATE.active = [*before, watcher]
    try:
        yield watcher
    finally:
        STATE.active = [recorder for recorder in STATE.active if recorder is not watcher]


@overload
def custom_gradient(func: Callable[P, tuple[R, Callable[..., Any]]]) -> Callable[P, R]: ...
@overload
def custom_gradient(
    func: None = None,
) -> Callable[[Callable[P, tuple[R, Callable[..., Any]]]], Callable[P, R]]: ...
def custom_gradient(func: Any = None) -> Any:
    """Decorate a function that defines its own gradient.

    Parameters
    ----------
    func : callable
        Returns `(result, grad_fn)`.  `grad_fn` accepts a cotangent for each result and returns one for each argument
        (None: not connected), in their structure; options (keywords, and what is not numeric) may be left out.  If the
        function reads trainable variables, `grad_fn` accepts a keyword `variables` as well and returns
        `(argument_cotangents, variable_cotangents)`.

    Returns
    -------
    callable
        A function that returns `result`, and has the gradient `grad_fn` on tapes.

    Examples
    --------
    >>> import numpy as np, tapegen as tg
    >>> @tg.custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     def grad(upstream):
    ...         return upstream * (1 - 1 / (1 + e))
    ...     return np.log(1 + e), grad
    """
    if func is None:
        return custom_gradient

    @hides_frames
    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with _watching() as watcher:
            made = func(*args, **kwargs)
        if not (isinstance(made, tuple) and len(made) == 2 and callable(made[1])):
            raise TypeError(
                f"the function {func.__qualname__} decorated with custom_gradient must return a pair "
                f"(result, grad_fn), but returned {type(made).__name__}."
            )
        result, grad_fn = made
        return _recorded(func, grad_fn, result, (args, kwargs), watcher)

    return decorated


def _recorded(
    func: Callable[..., Any], grad_fn: Callable[..., Any], result: Any, given: tuple[Any, Any], watcher: _Watcher
) -> Any:
    leaves = list(pytree.leaves(given))
    own = {leaf._id for leaf in leaves if isinstance(leaf, Traced)}
    variables = [variable for number, variable in watcher.variables.items() if number not in own]
    if variables and not _takes_variables(grad_fn):
        raise TypeError(
            "@tg.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
            f"{variables}"
        )
    outs = list(pytree.leaves(result))
    count = len(list(pytree.leaves(given[0])))
    required = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Traced) or (k < count and _is_number(leaf))]

    def pull(*bars: Any) -> Sequence[Any]:
        upstream = [
            np.zeros(np.shape(like), _dtype(like)) if bar is None else bar for bar, like in zip(bars, outs, strict=True)
        ]
        tensors = [bar if isinstance(bar, Tensor) else fresh(bar) for bar in upstream]
        grads = grad_fn(*tensors, variables=list(variables)) if variables else grad_fn(*tensors)
        of_variables: list[Any] = []
        if variables:
            if not isinstance(grads, tuple | list) or len(grads) != 2:
                raise TypeError(
                    f"the grad_fn of {func.__qualname__} must return (argument gradients, variable gradients), since "
                    "the function uses variables."
                )
            grads, of_variables = grads[0], list(pytree.leaves(grads[1]))
            if len(of_variables) != len(variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        flat = list(pytree.leaves(grads))
        if len(flat) == len(required):
            by_place = dict(zip(required, flat, strict=True))
            flat = [by_place.get(k) for k in range(len(leaves))]
        elif len(flat) != len(leaves):
            raise ValueError(
                f"custom_gradient function expected to return {len(required)} gradients, but returned {len(flat)} "
                "instead."
            )
        return [
            _cotangent(term, getattr(leaf, "shape", ()), func)
            for term, leaf in zip((*flat, *of_variables), (*leaves, *variables), strict=True)
        ]

    pairs = [operand(leaf) for leaf in (*leaves, *variables)]
    values = [out._value if isinstance(out, Traced) else np.array(out) for out in outs]
    return pytree.refilled(result, recorded(Closure(func.__name__, pull, None), pairs, values))


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def _dtype(like: Any) -> np.dtype:
    return like.dtype if hasattr(like, "dtype") else np.asarray(like).dtype


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | np.generic | int | float)


def _cotangent(term: Any, shape: tuple[int, ...], func: Callable[..., Any]) -> Any:
    """The gradient that `func` returns for an argument of a shape; the sweep sums over broadcast axes."""
    if term is None:
        return None
    found = identity(term) if isinstance(term, Variable) else term if isinstance(term, Tensor) else np.asarray(term)
    padded = (1,) * (found.ndim - len(shape)) + shape
    fits = len(padded) == found.ndim and all(n in (1, m) for n, m in zip(padded, found.shape, strict=True))
    if found.ndim and not fits:
        raise BadArgument(
            f"the grad_fn of {func.__qualname__} returns a gradient of shape {found.shape} for an argument of shape "
            f"{shape}.",
            "Return gradients in the shapes of the arguments.",
        )
    return found


def grad_pass_through(func: Callable[P, Any]) -> Callable[P, Any]:
    """A function with the value of `func` and the derivative of the identity (a straight-through estimator).

    Parameters
    ----------
    func : callable
        A function of one tensor that keeps its shape; further arguments are constants.

    Returns
    -------
    callable
        Accepts the arguments of `func`.

    Examples
    --------
    >>> x = tg.Variable(2.3)
    >>> with tg.GradientTape() as tape:
    ...     y = 3.0 * tg.grad_pass_through(np.round)(x)
    >>> float(y), float(tape.gradient(y, x))
    (6.0, 3.0)
    """

    @hides_frames
    @functools.wraps(func)
    def decorated(x: Any, *args: Any, **kwargs: Any) -> Any:
        with suspended():
            value: Any = cast(Any, func)(stop_gradient(convert_to_tensor(x)), *args, **kwargs)
        if np.shape(value) != np.shape(x):
            raise BadArgument(
                f"grad_pass_through: {func.__name__} makes shape {np.shape(value)} of {np.shape(x)}.",
                "Pass the gradient through functions that keep the shape only.",
            )
        pair = operand(x if isinstance(x, Traced) else np.asarray(x))
        raw = value._value if isinstance(value, Traced) else np.array(value)
        return recorded(Closure(func.__name__, lambda bar: [bar], lambda dot: [dot]), [pair], [raw])[0]

    return cast("Callable[P, Any]", decorated)


def recompute_grad(func: Callable[P, R]) -> Callable[P, R]:
    """A function with the value and derivatives of `func` that records nothing: it runs again in the backward sweep.

    Parameters
    ----------
    func : callable
        A function of tensors.

    Returns
    -------
    callable
        Accepts the arguments of `func`.
    """

    @hides_frames
    @functools.wraps(func)
    def decorated(*args: P.args, **kwargs: P.kwargs) -> R:
        with suspended(), _watching() as watcher:
            result = func(*args, **kwargs)
        leaves = list(pytree.leaves((args, kwargs)))
        own = {leaf._id for leaf in leaves if isinstance(leaf, Traced)}
        variables = [variable for number, variable in watcher.variables.items() if number not in own]
        for variable in variables:
            variable._operand()  # count as reads for the recorders here too
        # the second run reads the values of the first one
        read = [*variables, *(leaf for leaf in leaves if isinstance(leaf, Variable))]
        values = [variable._value for variable in read]
        held_args, held_kwargs = pytree.mapped(args, _saved_copy), pytree.mapped(kwargs, _saved_copy)
        sources = [leaf for leaf in (*leaves, *variables) if isinstance(leaf, Traced)]

        def pull(*bars: Any) -> Sequence[Any]:
            now = [variable._value for variable in read]
            for variable, value in zip(read, values, strict=True):
                variable._value = value
            try:
                with GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(sources)
                    again = func(*held_args, **held_kwargs)
            finally:
                for variable, value in zip(read, now, strict=True):
                    variable._value = value
            outs = list(pytree.leaves(again))
            found = iter(tape.gradient(outs, sources, [_weight(bar, out) for bar, out in zip(bars, outs, strict=True)]))
            return [next(found) if isinstance(leaf, Traced) else None for leaf in (*leaves, *variables)]

        pairs = [operand(leaf) for leaf in (*leaves, *variables)]
        outs = [out._value if isinstance(out, Traced) else np.array(out) for out in pytree.leaves(result)]
        return cast(R, pytree.refilled(result, recorded(Closure(func.__name__, pull, None), pairs, outs)))

    return decorated


def _saved_copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _weight(bar: Any, out: Any) -> Any:
    if bar is None:
        return np.zeros(out.shape, out.dtype)
    return bar
