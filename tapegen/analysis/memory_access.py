"""Memory access model: locations that a statement reads and writes, and what its targets denote afterwards."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.disjoint_sets import DisjointSets
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Push,
    Raise,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf

# results that alias an argument, but not as a view that the cotangent can repeat (a tuple of views, a view or a copy)
_UNFOLLOWED = frozenset(
    {
        np.imag,
        np.split,
        np.array_split,
        np.hsplit,
        np.vsplit,
        np.dsplit,
        np.broadcast_arrays,
        np.asanyarray,
        np.require,
        np.trim_zeros,
        np.linalg.diagonal,
        np.linalg.matrix_transpose,
        np.asfortranarray,
        np.unstack,
        np.float64,
        np.float32,
        np.complex128,
        np.complex64,
    }
)


# functions that repeat an operation: the count for which they return their argument
_UNCHANGED: Mapping[Any, tuple[str, int]] = {
    np.diff: ("n", 0),
    np.linalg.matrix_power: ("n", 1),
    np.polyder: ("m", 0),
    np.polyint: ("m", 0),
}


# functions of SciPy, by name so that it need not be loaded, that return a matrix of one or two rows itself
_OF_SMALL_MATRICES = frozenset({("scipy.linalg._decomp", "hessenberg")})

# functions of which the results but the heights are the given edges themselves, and where `bins` stands
_WITH_EDGES: Mapping[Any, int] = {np.histogram: 1, np.histogram_bin_edges: 1, np.histogram2d: 2}


def may_return_argument(call: Call) -> bool:
    """Whether a call may return an argument, or a view of it that has no counterpart for the cotangent."""
    func, args = call.func, call.args
    if is_one_of(func, _UNFOLLOWED) or not _makes_fresh(func):
        return True
    if (getattr(func, "__module__", None), getattr(func, "__name__", None)) in _OF_SMALL_MATRICES:
        return True
    if func is np.diag or func is np.einsum:  # by the ranks and the number of operands
        return not builders.is_fresh(call)
    if is_one_of(func, _UNCHANGED):
        name, times = _UNCHANGED[func]
        wanted = dict(call.kwargs).get(name, args[1] if len(args) > 1 else Const(1))
        return not isinstance(wanted, Const) or wanted.value == times
    if func is np.meshgrid:
        return "copy" in dict(call.kwargs)
    return False


# views that NumPy replaces by a copy when strides, dtype or layout require it
_MAYBE_COPIES = frozenset(
    {np.reshape, np.ravel, np.asarray, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.ascontiguousarray, np.real}
)

# functions that read the shape of an array, not its elements
_SHAPE_ONLY = frozenset(
    {
        intrinsics.dim,
        intrinsics.shape,
        len,
        np.shape,
        np.size,
        np.ndim,
        np.zeros_like,
        np.ones_like,
        np.empty_like,
        np.full_like,
    }
)

_LIST_WRITERS = frozenset({intrinsics.append, intrinsics.pop, intrinsics.set_item})
_FRESH_MODULES = frozenset({"numpy", "scipy", "math", "operator", "_operator", "builtins", "cmath"})


@dataclass(frozen=True, slots=True)
class Move:
    """The memory that an assigned variable denotes.

    Attributes
    ----------
    sources : tuple of Var
        Variables that it may alias; none for a new location.
    exact : bool
        Whether it is certainly the only source, or a view of it that the reverse sweep can repeat.
    items : bool
        Whether it shares memory with the items of the source, a run-time list.
    fresh : bool
        Whether it may also be new memory.
    """

    sources: tuple[Var, ...] = ()
    exact: bool = False
    items: bool = False
    fresh: bool = False


def moves(stmt: Assign) -> list[tuple[Var, Move]]:
    """For each array or list that a statement assigns: the memory that the target denotes afterwards."""
    if isinstance(stmt.value, Tuple) and len(stmt.value.items) == len(stmt.targets):
        pairs = zip(stmt.targets, stmt.value.items, strict=True)
        return [(target, _move(item)) for target, item in pairs if is_place(target)]
    if isinstance(stmt.value, Call) and is_one_of(stmt.value.func, _WITH_EDGES):
        given = _given_edges(stmt.value)
        edges = stmt.targets if stmt.value.func is np.histogram_bin_edges else stmt.targets[1:]
        return [
            (target, Move(given, fresh=bool(given)) if target in edges else Move())
            for target in stmt.targets
            if is_place(target)
        ]
    return [(target, _move(stmt.value)) for target in stmt.targets if is_place(target)]


def _given_edges(call: Call) -> tuple[Var, ...]:
    place = _WITH_EDGES[call.func]
    bins = dict(call.kwargs).get("bins", call.args[place] if len(call.args) > place else None)
    return () if bins is None else _vars(bins)


def viewed(value: Expr | None) -> Var | None:
    """The array of which a value is certainly a view; recomputing the value gives the same view."""
    if value is None or not is_place_type(value.type):
        return None
    if not isinstance(value, Load) and not (isinstance(value, Call) and is_one_of(value.func, intrinsics.VIEW_CALLS)):
        return None
    move = _move(value)
    return move.sources[0] if move.sources and not move.fresh else None


def _move(value: Expr) -> Move:
    if isinstance(value, Var):
        return Move((value,), exact=True)
    if isinstance(value, Load):
        basic = all(isinstance(item, Slice) or not isinstance(item.type, Array) for item in value.index)
        return Move((value.array,), exact=True) if basic else Move()
    if not isinstance(value, Call):
        return Move()
    func, args = value.func, value.args
    if func is intrinsics.ifelse:
        return Move((*_vars(args[1]), *_vars(args[2])))
    if func is intrinsics.primal_as:
        return Move(_vars(args[0]), exact=True)
    if func is intrinsics.item or func is intrinsics.pop:
        return Move(_vars(args[0]), items=True)
    if func is intrinsics.new_list or isinstance(func, Routine):
        return Move()
    out = dict(value.kwargs).get("out")
    if out is not None:
        return Move(_vars(out), exact=True)
    if is_one_of(func, intrinsics.VIEW_CALLS):
        return Move(_vars(args[0]), exact=True, fresh=_may_copy(value))
    if may_return_argument(value):
        return Move(tuple(var for arg in args for var in _vars(arg)), fresh=True)
    return Move()


def sources(value: Expr) -> Iterator[Var]:
    """The variables that the value of an expression may alias, nested calls included."""
    if isinstance(value, Var):
        if is_place(value):
            yield value
    elif isinstance(value, Tuple):
        for item in value.items:
            yield from sources(item)
    elif isinstance(value, Load):
        if isinstance(value.type, Array) and not any(_is_gather(item) for item in value.index):
            yield value.array
    elif isinstance(value, Call):
        func, args, kwargs = value.func, value.args, value.kwargs
        if func is intrinsics.ifelse:
            yield from sources(args[1])
            yield from sources(args[2])
            return
        if kwargs and (out := dict(kwargs).get("out")) is not None:
            yield from sources(out)
        if is_one_of(func, intrinsics.VIEW_CALLS) or is_one_of(func, _PASSING_ON):
            yield from sources(args[0])
        elif func is intrinsics.new_list or may_return_argument(value):
            for arg in (*args, *(kwarg for _, kwarg in kwargs)):
                yield from sources(arg)


_PASSING_ON: frozenset[Any] = frozenset({intrinsics.primal_as, intrinsics.item, intrinsics.pop})


def _is_gather(item: Expr | Slice) -> bool:
    return not isinstance(item, Slice) and isinstance(item.type, Array)


def _may_copy(call: Call) -> bool:
    """Whether a call that may return a view of its argument may as well return a copy."""
    if not is_one_of(call.func, _MAYBE_COPIES):
        return False
    base = call.args[0]
    contiguous = isinstance(base.type, Array) and base.type.layout == "C"
    plain = not call.kwargs and (len(call.args) == 1 or call.func is np.reshape)
    return not (contiguous and plain)


def depends_on_layout(func: Callable[..., Any]) -> bool:
    """Whether a function returns a view or a copy, as the layout of its argument in memory requires."""
    return is_one_of(func, _MAYBE_COPIES)


def is_one_of(func: Callable[..., Any], group: Container[Any]) -> bool:
    """Membership test that accepts unhashable callables."""
    try:
        return func in group
    except TypeError:
        return False


def _vars(expr: Expr) -> tuple[Var, ...]:
    if isinstance(expr, Var):
        return (expr,) if is_place(expr) else ()
    if isinstance(expr, Tuple):
        return tuple(var for item in expr.items for var in _vars(item))
    return ()


def _makes_fresh(func: Callable[..., Any]) -> bool:
    """Whether a function is known to return new memory; a user's function may return its argument."""
    if isinstance(func, (np.ufunc, type, BuiltinFunctionType)):
        return True
    module = getattr(func, "__module__", None) or ""
    return module.split(".")[0] in _FRESH_MODULES or module == intrinsics.__name__


@traversal.once
def components(function: Function) -> Mapping[Var, Var]:
    """Each array or list variable with a representative of its alias set."""
    known: dict[Var, None] = dict.fromkeys(param for param in function.params if is_place(param))
    sets = DisjointSets[Var]()
    for stmt in on_places(function):
        related = list_stores(stmt)
        known.update(dict.fromkeys(written(stmt)))
        if isinstance(stmt, Assign):
            for target, move in moves(stmt):
                known[target] = None
                related += [(target, source) for source in move.sources]
        for a, b in related:
            known |= {a: None, b: None}
            sets.join(a, b)
    return {var: sets.find(var) for var in known}


def list_stores(stmt: Stmt) -> list[tuple[Var, Var]]:
    """The (list, array) pairs where a statement makes the array an item of the list."""
    kind = type(stmt)
    if kind is not Effect and (kind is not Assign or not isinstance(stmt.targets[0].type, ListOf)):
        return []
    match stmt:
        case Effect(Call(intrinsics.append | intrinsics.set_item, (sequence, *_, item))):
            return [(sequence, var) for var in _vars(item)]  # type: ignore[misc]
        case Assign((sequence,), Call(intrinsics.new_list, items)):
            return [(sequence, var) for item in items for var in _vars(item)]
    return []


# ---- reads and writes ------------------------------------------------------------------------------------------------


def written(stmt: Any) -> tuple[Var, ...]:
    """The variables through which a statement writes."""
    kind = type(stmt)
    if kind is Assign:
        return _written_by_call(stmt.value) if type(stmt.value) is Call else ()
    if kind is Store:
        return (stmt.array,)
    if kind is not Effect:
        return ()
    call = stmt.call
    found = _written_by_call(call)
    if is_one_of(call.func, _LIST_WRITERS) or intrinsics.tells(call.func):
        return found
    return (*found, *[var for arg in call.args for var in _vars(arg)])  # np.copyto, np.fill_diagonal, rng.shuffle, ...


def _written_by_call(call: Call) -> tuple[Var, ...]:
    if is_one_of(call.func, _LIST_WRITERS):
        return _vars(call.args[0])
    if not call.kwargs:
        return ()
    return tuple([var for name, value in call.kwargs if name == "out" for var in _vars(value)])


@traversal.once
def on_places(function: Function) -> Sequence[Stmt]:
    """The statements of a program that allocate, alias or write a memory location."""
    found: list[Stmt] = []
    for stmt in traversal.statements(function.body):
        kind = type(stmt)
        if kind is Assign:
            if any(map(is_place, stmt.targets)) or written(stmt):
                found.append(stmt)
        elif kind is Store or kind is Effect:
            found.append(stmt)
    return found


def content_reads(stmt: Stmt) -> Iterator[Var]:
    """The arrays and lists whose elements a statement (of a compound statement: its header) may read."""
    if isinstance(stmt, Store) and stmt.accumulate:
        yield stmt.array
    for expr in expressions(stmt):
        for array, _ in operands(expr):
            yield array


def operands(expr: Expr | Slice | None) -> Iterator[tuple[Var, tuple[Any, ...]]]:
    """The locations whose elements an expression reads: (variable, index) pairs, index () for the whole.

    Making a view counts as reading; reading the shape alone does not.
    """
    match expr:
        case Var():
            if is_place(expr):
                yield expr, ()
        case Load(array, index):
            yield array, index
            for item in index:
                yield from operands(item)
        case Slice(lo, hi, step):
            for part in (lo, hi, step):
                yield from operands(part)
        case Tuple(items):
            for item in items:
                yield from operands(item)
        case Call(func, args, kwargs):
            for arg in args[1:] if is_one_of(func, _SHAPE_ONLY) else args:
                yield from operands(arg)
            for _, arg in kwargs:
                yield from operands(arg)


def expressions(stmt: Stmt) -> tuple[Expr | Slice, ...]:
    """The expressions that a statement itself evaluates (of a compound statement: its header)."""
    match stmt:
        case Assign(_, value) | Push(_, value):
            return (value,)
        case Store(_, index, value):
            return (*index, value)
        case Effect(call):
            return (call,)
        case If(test) | While(test):
            return (test,)
        case For(_, start, stop, step):
            return (start, stop, step)
        case Return(values) | Raise(_, values):
            return values
    return ()


def statements(block: Block, loops: tuple[Stmt, ...] = ()) -> Iterator[tuple[Stmt, tuple[Stmt, ...]]]:
    """Every statement with the loops around it (outermost first), in textual order."""
    for stmt in block:
        yield stmt, loops
        match stmt:
            case For() | While():
                yield from statements(stmt.body, (*loops, stmt))
            case If(_, body, orelse):
                yield from statements(body, loops)
                yield from statements(orelse, loops)


def is_place(var: Var) -> bool:
    """Whether a variable denotes a memory location (an array or a run-time list)."""
    return is_place_type(var.type)


def is_place_type(type_: Any) -> bool:
    return isinstance(type_, (Array, ListOf))
