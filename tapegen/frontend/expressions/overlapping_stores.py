"""Stores whose right side may be a view of the array that is written.

NumPy copies such a right side first, with one exception: lines of an array whose strides have the same sign are stored
element by element.  The result is that of a copy where the strides are equal, and arbitrary where an element is written
before it is read: after `x[::2] = x[:4]`, `x[4]` is the old `x[1]`, not the old `x[2]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapegen.frontend.lowering.emit import is_view
from tapegen.frontend.values.context import Context
from tapegen.ir.nodes import Call, Const, Load, Slice, Var
from tapegen.ir.types import Array

FULL = Slice()


@dataclass(frozen=True, slots=True)
class Line:
    """The elements of an array along one axis.

    Attributes
    ----------
    array : Var
        The array.
    items : tuple
        An integer for each other axis, and the slice.
    axis : int
        Which item is the slice.
    """

    array: Var
    items: tuple[Any, ...]
    axis: int

    @property
    def slice(self) -> Slice:
        """The elements that are taken along the axis."""
        found = self.items[self.axis]
        assert isinstance(found, Slice)
        return found


def is_stored_as_copied(cx: Context, array: Var, items: Sequence[Any], value: Var) -> bool:
    """Whether `array[items] = value` has the result that it has with a copy of `value`, which may be a view.

    The selected part has one axis.  Of what the variables of a loop hold, only the first values are known: two of them
    that begin as two arrays, such as buffers that are swapped, are taken to stay two arrays here.
    """
    if getattr(value.type, "rank", 0) == 0:
        return True
    return all(
        not _may_share(cx, target, source) or _line_is_copied(cx, target, items, source)
        for target in _merged(cx, array)
        for source in _merged(cx, value)
    )


def _merged(cx: Context, array: Var) -> list[Var]:
    """An array; those that an `if` selects it from; what a variable of a loop holds at first, too."""
    if array in cx.symbols.entries:
        first = cx.symbols.resolve(cx.symbols.entries[array])
        return [array, *(_merged(cx, first) if isinstance(first, Var) and first != array else [])]
    if cx.symbols.roots_of(array) is not None or array not in cx.symbols.depends:
        return [array]
    sources = [cx.symbols.resolve(each) for each in cx.symbols.depends[array]]
    return [var for each in sources if isinstance(each, Var) for var in _merged(cx, each)]


def _may_share(cx: Context, target: Var, source: Var) -> bool:
    known = cx.symbols.roots_of(target), cx.symbols.roots_of(source)
    if None in known:
        return _base(cx, target) == _base(cx, source)
    return cx.symbols.may_overlap(target, source)


def _base(cx: Context, array: Any) -> Any:
    """The array of which an array is a part, a part of a part and so on."""
    made = cx.symbols.definitions.get(array)
    if isinstance(made, Call) and is_view(made):
        return _base(cx, made.args[0])
    return _base(cx, made.array) if isinstance(made, Load) else array


def _line_is_copied(cx: Context, array: Var, items: Sequence[Any], value: Var) -> bool:
    target = _line(array, items)
    made = cx.symbols.definitions.get(value)
    source = _line(made.array, made.index) if isinstance(made, Load) else None
    if source is None and value.type.rank == 1:  # type: ignore[union-attr]
        source = Line(value, (FULL,), 0)
    if target is None or source is None:
        return False
    return _strides_allow(cx, target, source) or _meet_once(target, source) or _is_read_ahead(target, source)


def _line(array: Var, items: Sequence[Any]) -> Line | None:
    assert isinstance(array.type, Array)
    padded = (*items, *[FULL] * (array.type.rank - len(items)))
    if any(isinstance(item, Const) and item.value is None for item in padded):
        return None
    axes = [k for k, item in enumerate(padded) if isinstance(item, Slice)]
    if len(axes) != 1 or any(isinstance(getattr(item, "type", None), Array) for item in padded):
        return None
    return Line(array, padded, axes[0])


def _step(part: Slice) -> int | None:
    if part.step is None:
        return 1
    return part.step.value if isinstance(part.step, Const) and isinstance(part.step.value, int) else None


def _strides_allow(cx: Context, target: Line, source: Line) -> bool:
    """Whether the strides are certainly equal, or of opposite signs."""
    first, second = _stride(cx, target), _stride(cx, source)
    if first is None or second is None or first[0] != second[0]:
        return False
    return first[1] == second[1] or first[1] * second[1] < 0


def _stride(cx: Context, line: Line) -> tuple[object, int] | None:
    """The stride of a line, as a number of steps along an axis of an array; of elements where that is contiguous."""
    array, axis, factor = line.array, line.axis, _step(line.slice)
    while factor is not None:
        assert isinstance(array.type, Array)
        if array.type.layout == "C" and axis == array.type.rank - 1:
            return "element", factor
        made = cx.symbols.definitions.get(array)
        if not isinstance(made, Load):
            return (array, axis), factor
        kept = [k for k, item in enumerate(made.index) if isinstance(item, Slice)]
        if any(isinstance(item, Const) and item.value is None for item in made.index):
            return (array, axis), factor
        if axis < len(kept):
            step = _step(made.index[kept[axis]])  # type: ignore[arg-type]
            axis, factor = kept[axis], None if step is None else factor * step
        else:
            axis += len(made.index) - len(kept)
        array = made.array
    return None


def _meet_once(target: Line, source: Line) -> bool:
    """Whether a row and a column begin alike, `m[i, k:] = m[k:, i]`: their common element stays where it is."""
    return (
        target.array == source.array
        and target.axis != source.axis
        and target.items[source.axis] == source.items[target.axis]
        and target.slice.lo == source.slice.lo
        and target.slice.step is None
        and source.slice.step is None
    )


def _is_read_ahead(target: Line, source: Line) -> bool:
    """Whether no element is written before it is read: `x[:n] = x[::2]`."""
    assert isinstance(target.array.type, Array)
    if target.array != source.array or target.array.type.layout != "C" or target.axis != source.axis:
        return False
    if target.array.type.rank != 1 or target.slice.lo is not None or source.slice.lo is not None:
        return False
    steps = _step(target.slice), _step(source.slice)
    return steps[0] is not None and steps[1] is not None and 0 < steps[0] <= steps[1]
