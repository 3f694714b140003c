"""Emission of loop nests: elements are written one by one, in memory order; overlap is resolved by temporary arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine
from tapegen.ir.nodes import Assign, Call, Const, Expr, Load, Stmt, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar
from tapegen.loops.analysis.symbolic_bounds import Extents, dim
from tapegen.loops.legalize import precision
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder, loop_over

# ---- arrays ----------------------------------------------------------------------------------------------------------


def allocate(w: LoopBuilder, var: Var, extents: Extents, func: object = np.empty) -> None:
    """`var = np.empty(shape, dtype)`, in the layout that the type of `var` states."""
    assert isinstance(var.type, Array)
    w.forget([var])
    w.emit(Assign((var,), new_array(w, var.type, extents, func), w.origin))
    w.facts.set_shape(var, extents)
    if var.type.layout == "A":
        w.layouts[var] = "C"


def new_array(w: LoopBuilder, type_: Array, extents: Extents, func: object = np.empty) -> Expr:
    """A new array of given extents."""
    turned = type_.layout == "F" and type_.rank > 1
    sizes = [w.clamped(extent) for extent in (reversed(extents) if turned else extents)]
    shape: Expr = _shape_of_one(extents) if not turned else None  # type: ignore[assignment]
    if shape is None:
        shape = sizes[0] if len(sizes) == 1 else Tuple(tuple(sizes))
    args = (shape,) if type_.dtype == "float64" else (shape, Const(getattr(np, precision.numpy_name(type_.dtype))))
    array = Call(func, args, (), Array(type_.dtype, type_.rank, "C"))  # type: ignore[arg-type]
    return Call(intrinsics.transpose_view, (array,), (), type_) if turned else array


def _shape_of_one(extents: Extents) -> Expr | None:
    """`x.shape` if the extents are those of an array `x`."""
    match extents[0].size if len(extents) > 1 else None:
        case Call(intrinsics.dim, (Var() as array, _)) if isinstance(array.type, Array) and array.type.rank == len(
            extents
        ):
            if all(extent.size == dim(array, k) for k, extent in enumerate(extents)):
                return Call(intrinsics.shape, (array,), (), Tuple(tuple(extent.size for extent in extents)).type)
    return None


def scratch(w: LoopBuilder, extents: Extents, dtype: str, base: str = "t") -> Var:
    """A new array for intermediate results."""
    var = w.fresh(base, Array(dtype, len(extents), "C", tuple(extent.is_unit for extent in extents)))
    allocate(w, var, extents)
    return var


# ---- loop nests ------------------------------------------------------------------------------------------------------


def counters_for(w: LoopBuilder, extents: Extents) -> Indices:
    """An index of counters; axes of size 1 need none."""
    counters = iter(w.counters(sum(1 for extent in extents if not extent.is_unit)))
    return tuple(Const(0) if extent.is_unit else next(counters) for extent in extents)


def nest(
    w: LoopBuilder, extents: Extents, index: Indices, body: list[Stmt], order: Sequence[Var] | None = None
) -> None:
    """Emit loops around a body; `order` lists the counters from the outermost to the innermost."""
    sizes = {i: extent.size for i, extent in zip(index, extents, strict=True) if isinstance(i, Var)}
    for counter in reversed(list(order if order is not None else sizes)):
        body = [loop_over(counter, sizes[counter], body, w.origin)]
    w.emit(*body)


def fill(
    w: LoopBuilder, target: ElementRule, value: ElementRule, accumulate: bool = False, fresh: bool = False
) -> None:
    """Store a value (of the target's extents) into a target.

    A target that is not `fresh` may share memory with what the value reads: then the value is evaluated to a new array
    first, unless no element is written before it is read.
    """
    index = counters_for(w, target.extents)
    with w.block() as body:
        element = stored(value.at(index), target.dtype, value.weak or accumulate)
        place = target.at(index)
        if not isinstance(place, Load):
            raise w.unsupported("a store into parts of complex numbers")
        w.emit(Store(place.array, place.index, element, accumulate, w.origin))
    counters = [i for i in index if isinstance(i, Var)]
    order = memory_order(w, body, counters)
    sizes = {i: extent.form for i, extent in zip(index, target.extents, strict=True) if isinstance(i, Var)}
    inner = traversal.assigned_in(*body)
    if not fresh and not all(_reads_first(w, place, read, order, sizes, inner) for read in element_loads(body)):
        buffer = scratch(w, target.extents, value.dtype)
        fill(w, w.array(buffer), value, fresh=True)
        fill(w, target, w.array(buffer), accumulate, fresh=True)
        return
    nest(w, target.extents, index, body, order)


def stored(element: Expr, dtype: str, weak: bool) -> Expr:
    """An element converted for its store: numba converts between numeric types, but not to and from booleans."""
    if dtype == "bool" or precision.dtype_of(element) == "bool":
        return precision.convert(element, dtype)
    if weak and dtype == "float32" and isinstance(element.type, Scalar) and element.type.python:
        return precision.convert(element, dtype)
    return element


def element_loads(body: Iterable[Stmt]) -> list[Load]:
    """Every element that a block reads (the target of an accumulating store aside)."""
    found: list[Load] = []
    for stmt in traversal.statements(tuple(body)):
        parts = stmt.headers
        if isinstance(stmt, Store):
            parts = (*stmt.index, stmt.value)
        for part in parts:
            found += traversal.loads(part)
    return found


def memory_order(w: LoopBuilder, body: list[Stmt], counters: list[Var]) -> list[Var]:
    """Counters from the largest stride to the smallest, so that the innermost loop runs through contiguous memory."""
    accesses: list[tuple[Var, tuple[Expr, ...]]] = []
    inner = traversal.assigned_in(*body)
    for stmt in traversal.statements(tuple(body)):
        if isinstance(stmt, Store):
            accesses.append((stmt.array, stmt.index))  # type: ignore[arg-type]
            if any(traversal.loads(item) or traversal.free_vars(item) & inner for item in stmt.index):
                return counters  # scattered stores: the order in which elements are written matters
    accesses += [(load.array, load.index) for load in element_loads(body)]  # type: ignore[misc]
    strides = dict.fromkeys(counters, 0.0)
    for array, index in accesses:
        axes = list(index) if w.layout(array) == "F" else list(reversed(index))
        for distance, item in enumerate(axes):
            for counter in traversal.free_vars(item) & strides.keys():
                strides[counter] += 1000.0**distance
    return sorted(counters, key=lambda counter: -strides[counter])


def _reads_first(
    w: LoopBuilder, write: Load, read: Load, order: list[Var], sizes: dict[Var, Affine], inner: Set[Var]
) -> bool:
    """Whether no iteration writes an element that a later iteration reads."""
    same_dtype = precision.dtype_of(write) == precision.dtype_of(read)
    if not same_dtype or not w.sharing.may_share(w.statement, write.array, read.array):
        return True
    if write.array != read.array:
        return False
    pairs = [(w.facts.form(a), w.facts.form(b)) for a, b in zip(write.index, read.index, strict=True)]  # type: ignore[arg-type]
    if any(_apart(w, a, b, sizes) for a, b in pairs if not _mentions(a, inner) and not _mentions(b, inner)):
        return True
    for counter in order:
        distance = _distance(pairs, counter, inner | set(order))
        if distance is None:
            return False
        gap, stride = distance
        gap = gap if stride > 0 else -gap
        if gap.is_constant and gap.constant % stride:
            return True  # they are never equal
        if w.facts.nonnegative(gap - 1):
            return True
        if not w.facts.nonnegative(gap):
            return False
    return True


def _apart(w: LoopBuilder, a: Affine, b: Affine, sizes: dict[Var, Affine]) -> bool:
    """Whether an index written in any iteration differs from one read in any iteration."""
    ranges = []
    for counter, size in sizes.items():
        other = Affine.atom(Var(f"?{counter.name}", counter.type))
        coefficient = b.coefficient(counter)
        b = b.without(counter) + other * coefficient
        for c in (Affine.atom(counter), other):
            ranges += [c, size - 1 - c]
    with w.facts.supposing(*ranges):
        return w.facts.nonnegative(b - a - 1) or w.facts.nonnegative(a - b - 1)


def _mentions(form: Affine, names: Set[Var]) -> bool:
    return any(traversal.free_vars(atom) & names for atom in form.atoms)


def _distance(pairs: list[tuple[Affine, Affine]], counter: Var, varying: Set[Var]) -> tuple[Affine, int] | None:
    """The distance of a read from the write along an axis that only `counter` runs over, and the stride there."""
    for a, b in pairs:
        stride = a.coefficient(counter)
        if not stride or b.coefficient(counter) != stride:
            continue
        if not _mentions(a.without(counter), varying) and not _mentions(b.without(counter), varying):
            return b - a, stride
    return None
