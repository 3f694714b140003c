"""Compiled calls: differentiable functions called with tensors make one record, with the compiled pullback."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegen.api import Differentiable, vjp
from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.random_replay import refuse_unseeded
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.pipeline.options import Options
from tapegen.runtime.bound_call import BoundCall
from tapegen.runtime.random_state import States, repeating_draws, states_of
from tapegen.runtime.stored_state import stored_actively
from tapegen.tape.engine import pytree
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.engine.state import is_tracked
from tapegen.tape.tensors.closures import Closure, recorded
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh, known_as, operand


class Applied:
    """A differentiable function and the arguments that it is called with.

    Parameters
    ----------
    wrt : tuple
        The positions and names of the arguments in which tensors are tracked.
    """

    def __init__(
        self, function: Differentiable, args: tuple[Any, ...], kwargs: dict[str, Any], wrt: tuple[Any, ...]
    ) -> None:
        self.function = function
        self.wrt = wrt
        self.drawn: States = []  # the states of generators before the call
        self.bare = pytree.mapped(args, _bare), pytree.mapped(kwargs, _bare)
        # later reads must find the values of this call
        self.kept = pytree.mapped(args, _saved_copy), pytree.mapped(kwargs, _saved_copy)

    @functools.cached_property
    def called(self) -> BoundCall:
        """The call of the function itself."""
        args, kwargs = self.bare
        return self.function.with_options(wrt=self.wrt, has_aux=False)._specialise(args, kwargs)

    @functools.cached_property
    def forward(self) -> tuple[Any, Callable[..., Any]]:
        """The value, and the compiled pullback."""
        self.drawn = states_of(self.called.leaves())
        return self.called.vjp()

    def pull(self, *bars: Any) -> Sequence[Any]:
        """Cotangents of all leaves of the tracked arguments; None means no cotangent of a result."""
        value, pullback = self.forward
        outs = list(pytree.leaves(value))
        full = [_zeros(out) if bar is None else bar for bar, out in zip(bars, outs, strict=True)]
        if any(isinstance(bar, Tensor) and is_tracked(bar._id) for bar in full) or self._varies():
            self._refuse_stores()
            with repeating_draws(self.drawn):
                found = _second_order(self.function, self.kept, self.wrt, pytree.refilled(value, full))
        else:
            found = pullback(pytree.refilled(value, [_like(_bare(b), o) for b, o in zip(full, outs, strict=True)]))
        return list(pytree.leaves(found))

    def push(self, *dots: Any) -> Sequence[Any] | None:
        """Tangents of the results; None where these, or the arguments, are tracked themselves."""
        if any(map(_varies, dots)) or self._varies() or self.wrt_by_name:
            return None
        self._refuse_stores()
        remaining = iter(dots)
        args, kwargs = self.bare
        refuse_unseeded(self.called.program.lowered.function)
        tangents = tuple(
            pytree.mapped(item, lambda leaf: _tangent(leaf, next(remaining))) if place in self.wrt else None
            for place, item in enumerate(args)
        )
        with repeating_draws(self.drawn):
            return list(pytree.leaves(self.function.with_options(has_aux=False).jvp(args, tangents, **kwargs)[1]))

    def _refuse_stores(self) -> None:
        """Refuse to run the function again if what it reads of the caller's objects has changed since."""
        if self.called.program.lowered.mutations:
            stored = ", ".join(name for each in self.called.program.lowered.mutations for name in each.names)
            raise NotDifferentiable(
                f"{self.function.python.__qualname__} stores into {stored}, and this derivative would run it again.",
                "Use tg.jvp, tg.hessian or tg.hvp of the function itself.",
                user_span(),
            )

    @property
    def wrt_by_name(self) -> bool:
        """Whether tensors are tracked in keywords."""
        return any(isinstance(name, str) for name in self.wrt)

    def _varies(self) -> bool:
        return any(map(_varies, pytree.leaves(self.kept)))


def call(function: Differentiable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a differentiable function with tensors among its arguments."""
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    wrt = tuple(name for name, item in given.items() if any(map(_varies, pytree.leaves(item))))
    applied = Applied(function, args, kwargs, wrt)
    bare_args, bare_kwargs = applied.bare
    if not wrt:
        _refuse_writing(function, bare_args, bare_kwargs, given, is_followed=False)
        return pytree.mapped(function(*bare_args, **bare_kwargs), _as_tensor)
    varied = function.with_options(wrt=wrt, has_aux=False)
    _refuse_writing(varied, bare_args, bare_kwargs, given, is_followed=True)
    active = stored_actively(applied.called.program)
    if active:
        raise NotDifferentiable(
            f"{function.python.__qualname__} stores into {', '.join(active.values())} while it is recorded: what is "
            "stored leaves the tape.",
            "Return it as well.",
            user_span(),
        )
    value, _ = applied.forward
    followed = [leaf for name in wrt for leaf in pytree.leaves(given[name])]
    plain = [leaf for leaf in pytree.leaves((args, kwargs)) if isinstance(leaf, np.ndarray)]
    values = [_read_only(np.asarray(out)[()], plain) for out in pytree.leaves(value)]
    operation = Closure(function.python.__name__, applied.pull, applied.push)
    return pytree.refilled(value, recorded(operation, [operand(leaf) for leaf in followed], values))


def run_body(
    body: Callable[..., Any],
    whole: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run the body of a rule on tensors; a body that writes into arrays, which tensors are not, is compiled."""
    try:
        return body(*args, **kwargs)
    except NotDifferentiable:
        if not any(isinstance(leaf, Traced) for leaf in pytree.leaves((args, kwargs))):
            raise
    return whole(args, kwargs)


def run(body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the body of a rule on tensors, as a differentiable function."""
    return call(_differentiable(body), args, kwargs)


@functools.cache
def _differentiable(body: Callable[..., Any]) -> Differentiable:
    return Differentiable(body, Options(backend="python"))


def _refuse_writing(
    function: Differentiable, args: tuple[Any, ...], kwargs: dict[str, Any], given: dict[Any, Any], is_followed: bool
) -> None:
    """Refuse written arguments: tensors are immutable, and stores into an array next to one would leave the tape."""
    written = function.writes_into(args, kwargs)
    values = [leaf._value for item in given.values() for leaf in pytree.leaves(item) if isinstance(leaf, Traced)]
    if any(array is value for array in written for value in values):
        raise NotDifferentiable(
            f"{function.python.__qualname__} writes into an argument that is a tensor, and tensors are immutable.",
            "Copy the argument inside the function (x = x.copy()) and write into the copy.",
            user_span(),
        )
    if is_followed and written:
        raise NotDifferentiable(
            f"{function.python.__qualname__} writes into an argument while it is recorded: what is written leaves the "
            "tape.",
            "Copy the argument inside the function (x = x.copy()), write into the copy, and return it.",
            user_span(),
        )


def _second_order(function: Differentiable, held: Any, wrt: tuple[int | str, ...], value_bar: Any) -> Any:
    """The pullback as a differentiable function, called with tensors."""
    args, kwargs = held
    return _pullback_of(function, len(args), tuple(kwargs), wrt)(*args, *kwargs.values(), value_bar)


_MADE: dict[Any, Differentiable] = {}
_MOST = 256


def _pullback_of(
    function: Differentiable, count: int, names: tuple[str, ...], wrt: tuple[int | str, ...]
) -> Differentiable:
    key = (function.python, function.options, count, names, wrt)
    if key not in _MADE:
        parameters = [*(f"argument_{k}" for k in range(count)), *names]
        passed = [*parameters[:count], *(f"{name}={name}" for name in names)]
        text = (
            f"def pullback_of({', '.join(parameters)}, value_bar):\n"
            f"    value, pullback = vjp(function, {', '.join(passed)}, wrt={wrt!r}, has_aux=False)\n"
            "    return pullback(value_bar)\n"
        )
        made = function_from_text(text, {"vjp": vjp, "function": function})
        if len(_MADE) >= _MOST:
            del _MADE[next(iter(_MADE))]  # they hold the user's function
        _MADE[key] = Differentiable(made, function.options.__class__(backend=function.options.backend))
    return _MADE[key]


def _read_only(out: Any, others: list[np.ndarray]) -> Any:
    """A read-only result."""
    return out.copy() if any(np.may_share_memory(out, other) for other in others) else out


def _varies(leaf: Any) -> bool:
    return isinstance(leaf, Traced) and is_tracked(leaf._operand()[1])


def _bare(leaf: Any) -> Any:
    """The arguments of the function itself: arrays, and scalars where there are no axes."""
    if not isinstance(leaf, Traced):
        return leaf
    value = leaf._operand()[0]
    return value if value.ndim else value[()]


def _saved_copy(leaf: Any) -> Any:
    if isinstance(leaf, Traced):
        return known_as(*leaf._operand())
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _as_tensor(leaf: Any) -> Any:
    return fresh(np.asarray(leaf)[()]) if isinstance(leaf, np.ndarray | np.generic | float) else leaf


def _zeros(out: Any) -> Any:
    return np.zeros(np.shape(out), np.asarray(out).dtype)


def _like(bar: Any, out: Any) -> Any:
    return np.asarray(bar) if isinstance(out, np.ndarray) else np.asarray(bar)[()]


def _tangent(leaf: Any, dot: Any) -> Any:
    return _zeros(leaf) if dot is None else _bare(dot)
