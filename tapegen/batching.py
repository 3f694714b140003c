"""Batches: a function and its derivatives for each instance along an axis of the arguments, in one compiled call."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Generic, ParamSpec

import numpy as np

from tapegen.api import Differentiable, check_sequences, differentiable, refuse_recorded, with_options
from tapegen.errors import BadArgument
from tapegen.frontend.calls.batches import (
    OMITTED,
    Axes,
    axes_of_directions,
    axes_of_parts,
    axis_within,
    checked_axes,
    named_axes,
    passed,
)
from tapegen.frontend.source.callables import free_parameters, made_for, standing_for, unwrap
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import children_of, leaf_type, rebuild
from tapegen.higher_order import hvp, jacobian
from tapegen.ir.protocols import marks, refuses
from tapegen.ir.types import RandomGenerator
from tapegen.pipeline.artifacts.execution import Raised, interpret
from tapegen.pipeline.batch_loops import DIFFER, EMPTY
from tapegen.pipeline.nested import PIPELINE
from tapegen.pipeline.options import Options, Wrt, as_wrt
from tapegen.runtime.tracebacks import hides_frames

__all__ = ["Batch", "batch"]

P = ParamSpec("P")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Batch(Generic[P]):
    """A function for each instance of a batch, together with its derivatives; made by `batch`."""

    __tapegen_opaque__ = True

    def __init__(self, owner: Differentiable, axes: Axes) -> None:
        self.owner, self.axes = owner, axes
        self._loops: dict[str, _Loop] = {}

    def __repr__(self) -> str:
        return f"<batch of {getattr(self.owner.python, '__qualname__', self.owner.python)}, in_axes={self.axes!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared, (self.owner, self.axes)

    def __tapegen_written__(self) -> tuple[str, tuple[Any, ...]]:
        """Its text: see `pipeline.reproducer`."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.changed().items())
        return f"tg.batch({{}}, {{}}{options.replace('{', '{{').replace('}', '}}')})", (self.owner.python, self.axes)

    @property
    def options(self) -> Options:
        """The options of the function."""
        return self.owner.options

    @property
    def python(self) -> FunctionType:
        """The plain Python loop over the instances."""
        return self.of("__call__").function

    @marks("batch", PIPELINE)
    @hides_frames
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The values of all instances: each number or array in the result has an axis of instances in front."""
        return self.of("__call__").compiled(*args, **kwargs)

    @marks("batch", PIPELINE)
    @hides_frames
    def value_and_grad(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Values and gradients, as of `Differentiable.value_and_grad`; each has an axis of instances in front.

        There is a gradient for each instance also by an argument that they share.
        """
        return self.of("value_and_grad").compiled(*args, **kwargs)

    @marks("batch", PIPELINE)
    @hides_frames
    def grad(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The gradients alone; with `has_aux`, `(gradients, aux)`."""
        return self.of("grad").compiled(*args, **kwargs)

    @marks("batch", PIPELINE)
    @hides_frames
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any) -> Any:
        """Values and their derivatives along directions, which have the axes of their arguments."""
        check_sequences(primals, tangents)
        return self.of("jvp").compiled(tuple(primals), tuple(tangents), **kwargs)

    @marks("batch", PIPELINE)
    @hides_frames
    def jacobian(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The Jacobians of the instances; axes of the instances, the result and the argument."""
        return self.of("jacobian").compiled(*args, **kwargs)

    @marks("batch", PIPELINE)
    @hides_frames
    def hvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The products of the Hessians with directions, which have the axes of their arguments."""
        check_sequences(primals, tangents)
        return self.of("hvp").compiled(tuple(primals), tuple(tangents))

    @hides_frames
    def vjp(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Values and pullback.

        Returns
        -------
        value : object
            The values of all instances.
        pullback : callable
            `pullback(value_bar)` accepts a cotangent for each instance, in the structure of `value`, and returns the
            cotangents of `wrt`, for each instance; it may be called any number of times.
        aux : object
            Only with `has_aux`: the auxiliary results.
        """
        refuse_recorded("vjp", args, kwargs)
        held = copy.deepcopy((args, kwargs))
        found = self(*args, **kwargs)
        value, *aux = found if self.options.has_aux else (found,)

        @hides_frames
        def pullback(value_bar: Any) -> Any:
            """Cotangents of the arguments of `wrt` for cotangents of the values."""
            given, named = copy.deepcopy(held)
            return self._pullback(len(given), tuple(named)).compiled(value_bar, given, named)

        return value, pullback, *aux

    def _pullback(self, count: int, keywords: tuple[str, ...]) -> _Loop:
        """The loop over pullbacks of calls with so many positional arguments and these keywords."""
        key = f"pullback {count} {keywords}"
        if key not in self._loops:
            by_position, by_name = named_axes(self.axes, self.of("__call__").names, count, keywords)
            axes = (0, tuple([each for _, each in by_position]), by_name)
            call = "(*args, **kwargs)[1](value_bar)"
            place = f"_pullback({count}, {keywords!r})"
            self._loops[key] = self._loop("vjp", "value_bar, args, kwargs", call, axes, place)
        return self._loops[key]

    def of(self, name: str) -> _Loop:
        """The loop that a method of this name runs."""
        if name not in self._loops:
            if name in ("jvp", "hvp"):
                others = "" if name == "hvp" else ", **kwargs"
                text = f"primals, tangents{others}"
                axes = axes_of_directions(
                    self.axes, self.of("__call__").names, inspect.signature(self.python).parameters
                )
                self._loops[name] = self._loop(name, text, f"({text})", axes, f"of({name!r})")
            else:
                self._loops[name] = _Loop(self._instance(name), self, self.axes, name, f"of({name!r})")
        return self._loops[name]

    def _instance(self, name: str) -> Callable[..., Any]:
        """The method for one instance.  As plain Python, which runs where there is an error to report, or to debug."""
        owner = self.owner.with_options(backend="python")
        if name == "jacobian":
            return jacobian(owner, owner.options.wrt)
        found: Callable[..., Any] = owner if name == "__call__" else getattr(owner, name)
        return found

    def _loop(self, name: str, parameters: str, call: str, axes: Axes, place: str) -> _Loop:
        """The loop over calls of a method whose parameters are not those of the function."""
        title = f"{_title(self.owner)}_{name}"
        if name == "hvp":
            given: dict[str, Any] = {"hvp": hvp, "function": self.owner.with_options(backend="python")}
            call = f"hvp(function, {call[1:]}"
        else:
            given = {"function": self._instance(name)}
            call = f"function{call}"
        instance = made_for(
            function_from_text(f"def {title}({parameters}):\n    return {call}\n", given), unwrap(self.owner.python)[0]
        )
        return _Loop(instance, self, axes, name, place)


refuses(
    Batch.vjp,
    "its pullback computes the values of all instances again.",
    "Call tg.vjp(batched, *args): its cotangents of arguments that the instances share are those of the whole batch.",
)


class _Loop:
    """A loop over instances: a function that is called for each one, as plain Python and compiled.

    Attributes
    ----------
    python : callable
        The function.
    axes : object
        See `frontend.calls.batches.named_axes`.
    names : tuple of str
        Its parameters that can be passed by position.
    """

    __tapegen_opaque__ = True

    def __init__(self, python: Callable[..., Any], batch: Batch[Any], axes: Axes, name: str, place: str) -> None:
        self.python, self.axes = python, axes
        self._batch, self._place = batch, place
        owner = batch.owner
        function, bound, named = unwrap(python)
        parameters = [each for each in free_parameters(function, len(bound)) if each.name not in named]
        self.names = tuple(each.name for each in parameters if each.kind in _POSITIONAL)
        title = _title(owner) + ("" if name == "__call__" else f"_{name}")
        optional = [
            each if each.default is each.empty else each.replace(default=OMITTED, annotation=each.empty)
            for each in parameters
        ]
        self.function = standing_for(f"{title}_batch", optional, self.run, unwrap(owner.python)[0])
        options = owner.options
        passed_on = ("backend", "boundscheck", "fastmath", "cache", "parallel", "memory")
        kept = {name: getattr(options, name) for name in passed_on}
        compiled = differentiable(self.function, **kept)
        assert isinstance(compiled, Differentiable)
        self.compiled = compiled

    def __tapegen_written__(self) -> tuple[str, tuple[Any, ...]]:
        """Its text: see `pipeline.reproducer`."""
        return f"{{}}.{self._place}", (self._batch,)

    def of(self, name: str) -> _Loop:
        """Itself: see `ir.protocols.marks`."""
        return self

    @marks("batch", PIPELINE)
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the loop as plain Python."""
        count, named = passed(self.names, args, _is_omitted)
        named |= {name: arg for name, arg in kwargs.items() if not _is_omitted(arg)}
        by_position, by_name = named_axes(self.axes, self.names, count, tuple(named))
        sizes: dict[str, tuple[int, int]] = {}
        given = [_items(arg, axes, name, sizes) for arg, (name, axes) in zip(args, by_position, strict=False)]
        by_key = {name: _items(arg, by_name[name], name, sizes) for name, arg in named.items()}
        size = _common(sizes)
        if size == 0:
            return self._empty(args, kwargs)
        results = []
        for k in range(size):
            try:
                results.append(self.python(*[item(k) for item in given], **{n: item(k) for n, item in by_key.items()}))
            except Exception as error:
                error.add_note(f"in instance {k} of the batch")
                raise
        return _stacked(results)

    def _empty(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of no instance: plain Python has none, so that the types of the program say what they are."""
        call = self.compiled._specialise(args, kwargs)
        try:
            values = interpret(call.program, call.program.function("primal"), call.leaves())
        except Raised as raised:
            raise BadArgument(f"{EMPTY}.", "Pass one instance at least.") from raised.error
        return call.program.lowered.restore(values)


def _title(owner: Differentiable) -> str:
    name = getattr(owner.python, "__name__", "function")
    return name if name.isidentifier() else "lambda_"


def _is_omitted(value: Any) -> bool:
    return value is OMITTED


def _items(value: Any, axes: Axes, name: str, sizes: dict[str, tuple[int, int]]) -> Callable[[int], Any]:
    """The function that gives an argument of one instance; notes axis and size of each array."""
    if axes is None:
        return lambda k: value
    if isinstance(value, np.ndarray):
        axis = axis_within(axes, value.ndim, name)
        sizes[name] = axis, value.shape[axis]
        moved = np.moveaxis(value, axis, 0)
        return lambda k: moved[k]
    type_ = leaf_type(value)
    if type_ is not None and not isinstance(type_, RandomGenerator):
        axis_within(axes, None, name)
    struct = None if type_ is not None else children_of(value)
    if struct is None:
        return lambda k: value
    pairs = zip(struct.keys, struct.children, axes_of_parts(axes, struct, name), strict=True)
    parts = [_items(child, part, f"{name}.{key}", sizes) for key, child, part in pairs]
    return lambda k: rebuild(struct, [part(k) for part in parts])


def _common(sizes: Mapping[str, tuple[int, int]]) -> int:
    """The number of instances.

    Raises
    ------
    BadArgument
        No argument has an axis of instances, or two disagree.
    """
    if not sizes:
        raise BadArgument("no argument has an axis of instances.", "Give in_axes an axis of one argument at least.")
    (first, (axis, size)), *others = sizes.items()
    for name, (other, found) in others:
        if found != size:
            raise BadArgument(
                f"'{first}' has {size} instances along axis {axis}, '{name}' has {found} along axis {other}.",
                "Pass arrays of the same number of instances, and None in in_axes for what all of them share.",
            )
    return size


def _stacked(results: list[Any]) -> Any:
    """The results of all instances as one, with an axis of instances in front of each number and array."""
    first = results[0]
    if all(isinstance(value, np.ndarray | bool | int | float | complex | np.generic) for value in results):
        if any(np.shape(value) != np.shape(first) for value in results):
            raise BadArgument(f"{DIFFER}.", "Return arrays of one shape: pad them, or call the function in a loop.")
        return np.stack(results)
    parts = [part for result in results if (part := children_of(result)) is not None]
    if len(parts) == len(results) and all(
        (part.kind, part.cls, part.keys) == (parts[0].kind, parts[0].cls, parts[0].keys) for part in parts
    ):
        columns = zip(*(part.children for part in parts), strict=True)
        return rebuild(parts[0], [_stacked(list(column)) for column in columns])
    if any(type(value) is not type(first) or value != first for value in results):
        raise BadArgument(
            f"the instances of a batch return different things: {first!r}, and another one something else.",
            "Return numbers and arrays, in one structure for all instances.",
        )
    return first


@marks("batch", PIPELINE)
@hides_frames
def batch(func: Callable[P, Any], in_axes: Axes = 0, wrt: Wrt = 0, **options: Any) -> Batch[P]:
    """A function for each instance of a batch, with its derivatives.

    The instances lie along an axis of the arguments.  All of them run in one compiled call, each with its own number
    of iterations.

    Parameters
    ----------
    func : callable
        A function of one instance.
    in_axes : int, None, sequence or dict of them
        The axis of the instances: of all arguments, or of each one by position or by name.  It may be negative.  It
        holds for all arrays in an argument; a dict, tuple or list gives other axes to the parts of a structure.  None
        is for what all instances share.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to.
    **options
        Options of `differentiable`.

    Returns
    -------
    Batch
        Call it like the function; `.value_and_grad`, `.grad`, `.vjp` and `.jacobian` accept the same arguments, `.jvp`
        and `.hvp` accept them as one sequence and their tangents as another.  Each number and array in a result has
        the axis of the instances in front.
    """
    axes = checked_axes(in_axes)
    chosen: Any = wrt if isinstance(wrt, int | str) else as_wrt(wrt)
    return _shared(with_options(func, chosen, options), axes)


def _shared(owner: Differentiable, axes: Axes) -> Batch[Any]:
    """The same object for the same function and axes, so that `tg.batch(f)(x)` in a loop compiles once."""
    found = _made(owner, _frozen(axes))
    if not found:
        found.append(Batch(owner, axes))
    return found[0]


@functools.lru_cache(maxsize=256)
def _made(owner: Differentiable, axes: object) -> list[Batch[Any]]:
    """Where the batch of a function is kept."""
    return []


def _frozen(axes: Axes) -> object:
    """Axes as a key."""
    if isinstance(axes, Mapping):
        return "named", tuple((key, _frozen(part)) for key, part in axes.items())
    return tuple(map(_frozen, axes)) if isinstance(axes, tuple) else axes
