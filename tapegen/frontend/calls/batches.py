"""Batches: a function that is called for each instance, along an axis of its arguments (`tg.batch`).

The call for one instance is outlined; the pipeline writes a loop around its text, which is inlined at the call.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, cast

import numpy as np

from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.frontend.calls.nested_derivatives import inline_derivative
from tapegen.frontend.calls.outline import Derivative, outline_call, parameters_of
from tapegen.frontend.calls.repack import restored
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import adopt, export, static, struct_of, truth
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.state import Closure, is_number
from tapegen.ir.nodes import Expr, Var
from tapegen.ir.protocols import Kind, Mark
from tapegen.ir.types import Array, ListOf, RandomGenerator, Scalar, Type
from tapegen.settings import Keywords

Axes = Any
"""An axis, None for what all instances share, or the axes of the parts of an argument in its structure.

Those of all arguments of a function are one of these, or a tuple by position, or a dict by name.
"""


class _Omitted(enum.Enum):
    OMITTED = 0


OMITTED: Final = _Omitted.OMITTED
"""The default of each optional parameter of a batched function: what is not passed has no instances."""


def checked_axes(axes: Any) -> Axes:
    """The axes with tuples in place of lists.

    Raises
    ------
    BadArgument
        They are not made of integers and None.
    """
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return axes
    if isinstance(axes, tuple | list):
        return tuple(map(checked_axes, axes))
    if isinstance(axes, Mapping):
        return {key: checked_axes(part) for key, part in axes.items()}
    raise BadArgument(f"in_axes holds {axes!r}, which is no axis.", "Give integers, and None for what is shared.")


def axes_of_parts(axes: Axes, struct: Struct, name: str) -> list[Axes]:
    """The axes of the parts of a structure."""
    if isinstance(axes, int | None):
        return [axes] * len(struct.keys)
    if isinstance(axes, Mapping) and set(axes) == set(struct.keys):
        return [axes[key] for key in struct.keys]
    if isinstance(axes, _ByPosition) and len(axes) >= len(struct.keys):
        return list(axes[: len(struct.keys)])
    if not isinstance(axes, Mapping) and len(axes) == len(struct.keys) and struct.kind in ("tuple", "list"):
        return list(axes)
    raise BadArgument(
        f"in_axes is {axes!r} for '{name}', whose parts are {', '.join(map(repr, struct.keys))}.",
        "Give one axis for all of it, or one for each of its parts.",
    )


def axis_within(axes: Axes, rank: int | None, name: str) -> int:
    """The axis of an array, counted from 0.  `rank` is None for a number."""
    if not isinstance(axes, int):
        raise BadArgument(f"in_axes is {axes!r} for '{name}', which has no parts.", "Give an axis, or None.")
    if rank is None:
        raise BadArgument(
            f"'{name}' is a number, which has no axis {axes}.",
            "Pass an array of the numbers of all instances, or None for it in in_axes.",
        )
    if not -rank <= axes < rank:
        raise BadArgument(
            f"'{name}' has {rank} axes, and in_axes says that its instances lie along axis {axes}.",
            "Give an axis that it has, or None if all instances share it.",
        )
    return axes % rank


def named_axes(
    axes: Axes, names: Sequence[str], count: int, keywords: Sequence[str]
) -> tuple[list[tuple[str, Axes]], dict[str, Axes]]:
    """Names and axes of the positional arguments of a call, and the axes of its keyword arguments.

    Parameters
    ----------
    axes
        Those of all arguments, or of each one by position or name.
    names : sequence of str
        The parameters that can be passed by position; there may be more arguments (`*args`).
    count : int
        How many arguments are passed by position.
    keywords : sequence of str
        The names of the others.
    """
    named = [names[k] if k < len(names) else f"argument {k}" for k in range(count)]
    if isinstance(axes, int | None):
        return [(name, axes) for name in named], dict.fromkeys(keywords, axes)
    if isinstance(axes, Mapping):
        missing = next((name for name in (*named, *keywords) if name not in axes), None)
        if missing is not None:
            raise BadArgument(
                f"in_axes has no entry for '{missing}'.",
                "Give one for each argument: None for those that all instances share.",
            )
        return [(name, axes[name]) for name in named], {name: axes[name] for name in keywords}
    positions = {name: k for k, name in enumerate(names)}
    needed = max([count, *(positions[name] + 1 for name in keywords if name in positions)])
    if len(axes) < needed:
        raise BadArgument(
            f"in_axes has {len(axes)} entries, and the call {needed} arguments.",
            "Give one axis for all arguments, or one for each: None for those that all instances share.",
        )
    by_name = {name: axes[positions[name]] if name in positions else None for name in keywords}
    return list(zip(named, axes, strict=False)), by_name


class _ByPosition(tuple[Axes, ...]):
    """The axes of arguments in a sequence, in which the last ones may be left out."""


def axes_of_directions(axes: Axes, names: Sequence[str], keywords: Iterable[str]) -> Axes:
    """The axes of the arguments of `jvp`: primals, tangents, and the parameters `keywords` of the function.

    `axes` are those of the function, `names` its parameters that can be passed by position.
    """
    if isinstance(axes, int | None):
        return axes
    by_name = dict(axes) if isinstance(axes, Mapping) else dict(zip(names, axes, strict=False))
    by_position = _ByPosition(by_name.get(name) for name in names) if isinstance(axes, Mapping) else _ByPosition(axes)
    return {**dict.fromkeys(keywords), **by_name, "primals": by_position, "tangents": by_position}


def passed(names: Sequence[str], args: Sequence[Any], is_omitted: Callable[[Any], bool]) -> tuple[int, dict[str, Any]]:
    """How many positional arguments come before the first one that is omitted, and those after it, by name."""
    count = next((k for k, arg in enumerate(args) if is_omitted(arg)), len(args))
    return count, {names[k]: args[k] for k in range(count, len(args)) if not is_omitted(args[k])}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Batched:
    """What `tg.batch` makes inside a function of a function that is defined there, and its derivatives."""

    __tapegen_opaque__ = True

    mark: Mark
    func: Any
    axes: Axes
    names: tuple[str, ...]
    wrt: Any = 0
    has_aux: bool = False

    def attribute(self, name: str) -> Batched | None:
        """The method of a name; None if there is none."""
        axes, names = self.axes, self.names
        if name == "jvp":
            axes, names = axes_of_directions(axes, names, ()), ("primals", "tangents")
        elif name not in ("value_and_grad", "grad", "jacobian"):
            return None
        kind = cast(Kind, name)
        derived = StaticValue(Derivative(Mark(kind, self.mark.pipeline), self.func, self.wrt, self.has_aux))
        return dataclasses.replace(self, func=derived, axes=axes, names=names)


def batched_call(cx: Context, func: Any, mark: Mark, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call of `tg.batch`, or of a marked method of what it returns."""
    if isinstance(func, FunctionType):
        return _batch_of(cx, func, mark, args, kwargs)
    found = func.__self__.of(func.__name__)
    return batch_call(cx, Batched(mark, StaticValue(found.python), found.axes, found.names), args, kwargs)


def _batch_of(cx: Context, func: Any, mark: Mark, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`tg.batch(f, in_axes, wrt, **options)`."""
    given = dict(zip(inspect.signature(func).parameters, args, strict=False)) | dict(kwargs)
    target = given.pop("func", None)
    if target is None or len(args) > 3:
        raise cx.refusal(BadArgument, "tg.batch takes a function, in_axes and wrt.", "Pass these.")
    options = {name: _known(cx, value, name) for name, value in given.items() if name not in Keywords.__optional_keys__}
    unknown = next((name for name in options if name not in _DEFAULTS), None)
    if unknown is not None:
        raise cx.refusal(BadArgument, f"tg.batch takes no '{unknown}'.", "Leave it out.")
    try:
        options["in_axes"] = checked_axes(options.get("in_axes", 0))
    except BadArgument as error:
        raise cx.refusal(BadArgument, error.reason, error.advice) from None
    if isinstance(target, StaticValue) and not isinstance(target.value, Closure | Derivative):
        return StaticValue(func(target.value, **options))
    axes, wrt, has_aux = ({**_DEFAULTS, **options}[name] for name in _DEFAULTS)
    return StaticValue(Batched(mark, target, axes, tuple(parameters_of(cx, target)), wrt, has_aux))


_DEFAULTS = {"in_axes": 0, "wrt": 0, "has_aux": False}


def _known(cx: Context, value: Any, name: str) -> Any:
    """The value of an option, which is known when compiling."""
    content = struct_of(cx, value)
    if content is not None and content.kind in ("tuple", "list", "dict"):
        parts = [_known(cx, child, name) for child in content.children]
        return dict(zip(content.keys, parts, strict=True)) if content.kind == "dict" else tuple(parts)
    return static(cx, value, f"{name} of tg.batch")


def batch_call(cx: Context, batched: Batched, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function for each instance."""
    count, others = passed(batched.names, args, _is_omitted)
    args = args[:count]
    kwargs = others | {name: arg for name, arg in kwargs.items() if not _is_omitted(arg)}
    instance = _Instance(cx)
    try:
        by_position, by_name = named_axes(batched.axes, batched.names, len(args), tuple(kwargs))
        given = [instance.of(arg, axes, name) for arg, (name, axes) in zip(args, by_position, strict=True)]
        named = {name: instance.of(arg, by_name[name], name) for name, arg in kwargs.items()}
        if not instance.arrays:
            raise BadArgument("no argument has an axis of instances.", "Give in_axes an axis of one argument at least.")
    except BadArgument as error:
        raise cx.refusal(BadArgument, error.reason, error.advice) from None
    program = outline_call(cx, Derivative(batched.mark, batched.func), given, named, ())
    if program.changes:
        raise cx.refusal(
            NotDifferentiable,
            "the function of a batch changes a container that all instances share.",
            "Return what it stores, and take it from the result of the batch.",
        )
    if any(not isinstance(value.type, Array | Scalar) for value in program.values):
        raise cx.refusal(NotDifferentiable, "the function of a batch returns a list that grows.", "Return an array.")
    count = _count(cx, list(instance.arrays.values()))
    found = [instance.arrays.get(expr) for expr in program.given]
    axes = [None if each is None else each.axis for each in found]
    full = [expr if each is None else each.expr for expr, each in zip(program.given, found, strict=True)]
    function = dataclasses.replace(program.function, inner=not all(_is_exact(cx, expr) for expr in full))
    text = program.pipeline.batch(function, axes, cx.assumptions.modules)
    values = inline_derivative(cx, text, [count, *map(Leaf, full)])
    return restored(cx, _repeated(cx, program.output, count), values.__getitem__)


@dataclasses.dataclass(frozen=True, slots=True)
class _Instances:
    """An array of the surrounding program, the axis of its instances, and its name for errors."""

    expr: Expr
    axis: int
    name: str


class _Instance:
    """The arguments of one instance: variables that stand for its part of the arrays."""

    def __init__(self, cx: Context) -> None:
        self.cx = cx
        self.arrays: dict[Expr, _Instances] = {}

    def of(self, value: Any, axes: Axes, name: str) -> Any:
        """An argument of one instance."""
        return value if axes is None else adopt(self.cx, self._part(export(self.cx, value), axes, name))

    def _part(self, value: Any, axes: Axes, name: str) -> Any:
        if axes is None:
            return value
        if isinstance(value, Struct):
            parts = axes_of_parts(axes, value, name)
            children = [
                self._part(child, part, f"{name}.{key}")
                for key, child, part in zip(value.keys, value.children, parts, strict=True)
            ]
            return dataclasses.replace(value, children=tuple(children), whole=None)
        if isinstance(value, StaticValue):
            constant = value.value
            if is_number(constant) and not isinstance(constant, bool):
                axis_within(axes, None, name)
            return value
        if not isinstance(value, Leaf) or isinstance(value.type, RandomGenerator):
            return value
        if isinstance(value.type, ListOf):
            raise BadArgument(f"'{name}' is a list that grows, which has no axis {axes}.", "Pass an array.")
        type_ = value.type
        axis = axis_within(axes, type_.rank if isinstance(type_, Array) else None, name)
        assert isinstance(type_, Array)
        return self._item(self.cx.symbols.resolve(value.expr), type_, axis, name)

    def _item(self, array: Expr, type_: Array, axis: int, name: str) -> Leaf:
        cx = self.cx
        base = array.name.partition("#")[0] if isinstance(array, Var) else "x"
        var = cx.new_var(base, _item_type(type_, axis))
        self.arrays[var] = _Instances(array, axis, name)
        if isinstance(var.type, Array) and isinstance(array, Var):
            cx.symbols.depends[var] = (array,)  # its extents
            cx.symbols.roots[var] = cx.symbols.roots_of(array)
            if array in cx.symbols.shapes:
                cx.symbols.shapes[var] = _without(cx.symbols.shapes[array], axis)
        return Leaf(var)


def _is_exact(cx: Context, expr: Expr) -> bool:
    """Whether the type of an array says of each axis whether its size is 1: those of arguments do."""
    if not isinstance(expr.type, Array) or expr in cx.symbols.sample_shapes:
        return True
    return any(expr == var for var, _ in cx.assumptions.captured.values())


def _item_type(type_: Array, axis: int) -> Type:
    """The type of `array[i]`, or with `:` in front for axes that come first."""
    if type_.rank == 1:
        return Scalar(type_.dtype, python=False)
    first, last = axis == 0 and type_.layout == "C", axis == type_.rank - 1 and type_.layout == "F"
    layout = type_.layout if first or last else "A"
    return Array(type_.dtype, type_.rank - 1, layout, _without(type_.unit, axis) if type_.unit else ())


def _without(items: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    return (*items[:k], *items[k + 1 :])


def _is_omitted(value: Any) -> bool:
    return isinstance(value, StaticValue) and value.value is OMITTED


def _count(cx: Context, arrays: Sequence[_Instances]) -> Any:
    """The number of instances; arrays that disagree raise an error."""
    first, *others = arrays
    count = extent(cx, first.expr, first.axis)
    for other in others:
        differs = truth(cx, cx.call(cx, StaticValue(operator.ne), (extent(cx, other.expr, other.axis), count), {}))
        text = f"'{other.name}' along axis {other.axis} has another number of instances than '{first.name}'"
        if differs is True:
            cx.raise_(ValueError, text)
        if differs is not False:
            cx.raise_if(differs, ValueError, text)
    return count


def _repeated(cx: Context, output: Any, count: Any) -> Any:
    """A result in which a constant number is an array: one for each instance."""
    if isinstance(output, Struct):
        children = tuple(_repeated(cx, child, count) for child in output.children)
        return dataclasses.replace(output, children=children, whole=None)
    if isinstance(output, StaticValue) and (is_number(output.value) or isinstance(output.value, np.generic)):
        return emit_call(cx, np.full, (count, output))
    return output


__all__ = [
    "OMITTED",
    "Axes",
    "Batched",
    "axes_of_directions",
    "axes_of_parts",
    "axis_within",
    "batch_call",
    "batched_call",
    "checked_axes",
    "named_axes",
    "passed",
]
