"""Array programs as text, read into finished IR with whole expression trees; types come from a run on sample arguments.

The nests are tested apart from the front end: what is read here is what the sweeps look like when they reach them.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import math
import operator
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegen.backend.numba.build import build_numba, build_python
from tapegen.backend.printer.module import emit
from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import INT, STATIC, Array, Scalar, TupleOf, Type
from tapegen.loops.pipeline import lower_to_loops

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
_METHODS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "copy": np.copy, "reshape": np.reshape}
_METHODS |= {"ravel": np.ravel, "astype": np.astype, "dot": np.dot, "any": np.any, "all": np.all, "std": np.std}
_GLOBALS = {"np": np, "math": math, "ops": intrinsics, "warnings": warnings}


def type_of(value: Any) -> Type:
    if isinstance(value, np.ndarray):
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return Array(value.dtype.name, value.ndim, layout)
    if isinstance(value, np.generic):
        return Scalar(value.dtype.name, False)
    if isinstance(value, tuple):
        return TupleOf(tuple(map(type_of, value)))
    known = {bool: "bool", int: "int64", float: "float64"}.get(type(value))
    return STATIC if known is None else Scalar(known, True)


def read(text: str, args: tuple[Any, ...]) -> Function:
    """The program of `def f(...)` for arguments like these."""
    (definition,) = ast.parse(textwrap.dedent(text)).body
    assert isinstance(definition, ast.FunctionDef)
    reader = _Reader()
    params = []
    for parameter, value in zip(definition.args.args, copy.deepcopy(args), strict=True):
        type_ = type_of(value)
        if isinstance(type_, Array):
            type_ = Array(type_.dtype, type_.rank, type_.layout, tuple(size == 1 for size in value.shape))
        reader.env[parameter.arg] = value
        reader.vars[parameter.arg] = Var(parameter.arg, type_)
        params.append(reader.vars[parameter.arg])
    return Function(definition.name, tuple(params), reader.block(definition.body))


class _Reader:
    def __init__(self) -> None:
        self.env: dict[str, Any] = {}
        self.vars: dict[str, Var] = {}

    def block(self, statements: list[ast.stmt]) -> Block:
        out: list[Stmt] = []
        for node in statements:
            out += self.statement(node)
        return tuple(out)

    def run(self, node: ast.stmt) -> None:
        with np.errstate(all="ignore"):
            exec(ast.unparse(node), _GLOBALS, self.env)

    def sample(self, node: ast.expr) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(ast.unparse(node), _GLOBALS, self.env)

    def target(self, name: str) -> Var:
        if name not in self.vars:
            self.vars[name] = Var(name, type_of(self.env[name]))
        return self.vars[name]

    def statement(self, node: ast.stmt) -> list[Stmt]:
        match node:
            case ast.Assign([ast.Name(name)], value):
                expr = self.expr(value)
                self.run(node)
                return [Assign((self.target(name),), expr)]
            case ast.Assign([ast.Tuple(targets)], value):
                expr = self.expr(value)
                self.run(node)
                return [Assign(tuple(self.target(t.id) for t in targets), expr)]  # type: ignore[attr-defined]
            case ast.Assign([ast.Subscript() as place], value):
                load = self.expr(place)
                assert isinstance(load, Load)
                expr = self.expr(value)
                self.run(node)
                return [Store(load.array, load.index, expr)]
            case ast.AugAssign(target, op, value):
                return self.augmented(node, target, _BINARY[type(op)], value)
            case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(_, "add"), "at"), [array, index, value])):
                items = self.index(index)
                store = Store(self.expr(array), items, self.expr(value), True)  # type: ignore[arg-type]
                self.run(node)
                return [store]
            case ast.Expr(ast.Call() as call):
                return [Effect(self.expr(call))]  # type: ignore[arg-type]
            case ast.If(test, body, orelse):
                condition = self.expr(test)
                saved = copy.deepcopy(self.env)
                first = self.block(body)
                taken, self.env = self.env, saved
                second = self.block(orelse)
                if self.sample(test):
                    self.env = {**self.env, **taken}
                else:
                    self.env = {**taken, **self.env}
                return [If(condition, first, second)]
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), args), body):
                parts = [self.expr(arg) for arg in args]
                start, stop, step = (
                    (Const(0), parts[0], Const(1))
                    if len(parts) == 1
                    else (*parts, Const(1))
                    if len(parts) == 2
                    else parts
                )
                self.env[name] = next(iter(self.sample(node.iter)), 0)  # type: ignore[attr-defined]
                self.vars[name] = Var(name, INT)
                return [For(self.vars[name], start, stop, step, self.block(body))]
            case ast.While(test, body):
                return [While(self.expr(test), self.block(body))]
            case ast.Break():
                return [Break()]
            case ast.Continue():
                return [Continue()]
            case ast.Raise(ast.Call(ast.Name(name), messages)):
                return [Raise(getattr(builtins, name), tuple(self.expr(m) for m in messages))]
            case ast.Return(ast.Tuple(items)):
                return [Return(tuple(self.expr(item) for item in items))]
            case ast.Return(value):
                assert value is not None
                return [Return((self.expr(value),))]
            case ast.Pass():
                return []
        raise ValueError(f"line {node.lineno} of compiled text cannot be read back: {ast.unparse(node)}")

    def augmented(self, node: ast.stmt, target: ast.expr, op: Any, value: ast.expr) -> list[Stmt]:
        if isinstance(target, ast.Name) and not isinstance(self.env[target.id], np.ndarray):
            assign = ast.Assign([target], ast.BinOp(target, node.op, value))  # type: ignore[attr-defined]
            return self.statement(ast.fix_missing_locations(ast.copy_location(assign, node)))
        place = self.expr(target)
        index = place.index if isinstance(place, Load) else ()
        array = place.array if isinstance(place, Load) else place
        expr = self.expr(value)
        gather = any(not isinstance(item, Slice) and isinstance(item.type, Array) for item in index)
        if op is operator.add and not gather:
            store = Store(array, index, expr, True)  # type: ignore[arg-type]
        else:
            result = Call(op, (place, expr), (), place.type)
            store = Store(array, index, result)  # type: ignore[arg-type]
        self.run(node)
        return [store]

    # ---- expressions -------------------------------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Name("float" | "int" as name) if name not in self.vars:  # a dtype
                return Const(getattr(builtins, name))
            case ast.Name(name):
                return self.vars[name]
            case ast.Constant(value):
                return Const(value)
            case ast.Tuple(items) | ast.List(items):
                return Tuple(tuple(self.expr(item) for item in items))
            case ast.BinOp(left, op, right):
                return self.call(_BINARY[type(op)], node, left, right)
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return Const(-value)
            case ast.UnaryOp(op, operand):
                return self.call(_UNARY[type(op)], node, operand)
            case ast.Compare(left, [op], [right]):
                return self.call(_COMPARE[type(op)], node, left, right)
            case ast.BoolOp(op, values):
                func = intrinsics.and_ if isinstance(op, ast.And) else intrinsics.or_
                return Call(func, tuple(self.expr(v) for v in values), (), type_of(self.sample(node)))
            case ast.IfExp(test, body, orelse):
                return self.call(intrinsics.ifelse, node, test, body, orelse)
            case ast.Subscript(ast.Attribute(array, "shape"), ast.Constant(axis)):
                return Call(intrinsics.dim, (self.expr(array), Const(axis)), (), INT)
            case ast.Subscript(array, index):
                base = self.expr(array)
                if not isinstance(base, Var):
                    return Call(intrinsics.item, (base, self.expr(index)), (), type_of(self.sample(node)))
                return Load(base, self.index(index), type_of(self.sample(node)))
            case ast.Attribute(array, "T"):
                return self.call(intrinsics.transpose_view, node, array)
            case ast.Attribute(array, "shape"):
                return self.call(intrinsics.shape, node, array)
            case ast.Attribute(array, "size"):
                return self.call(np.size, node, array)
            case ast.Attribute():
                return Const(self.sample(node))
            case ast.Call(ast.Attribute(receiver, method), args, keywords) if method in _METHODS and not (
                isinstance(receiver, ast.Name) and receiver.id in _GLOBALS
            ):
                return self.call(_METHODS[method], node, receiver, *args, keywords=keywords)
            case ast.Call(func, args, keywords):
                return self.call(self.sample(func), node, *args, keywords=keywords)
        raise ValueError(f"line {node.lineno} of compiled text cannot be read back: {ast.unparse(node)}")

    def call(self, func: Any, node: ast.expr, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> Call:
        kwargs = tuple((word.arg or "", self.expr(word.value)) for word in keywords or [])
        value = self.sample(node)
        type_ = type_of(value)
        if isinstance(type_, Array) and any(name == "keepdims" for name, _ in kwargs):
            type_ = Array(type_.dtype, type_.rank, type_.layout, tuple(size == 1 for size in value.shape))
        return Call(func, tuple(self.expr(arg) for arg in args), kwargs, type_)

    def index(self, node: ast.expr) -> tuple[Any, ...]:
        items = node.elts if isinstance(node, ast.Tuple) else [node]
        return tuple(self.index_item(item) for item in items if not _is_ellipsis(item))

    def index_item(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            return Slice(*(None if part is None else self.expr(part) for part in (node.lower, node.upper, node.step)))
        return self.expr(node)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


# ---- running ---------------------------------------------------------------------------------------------------------


def python_function(text: str) -> Any:
    namespace = dict(_GLOBALS)
    exec(textwrap.dedent(text), namespace)
    return namespace[ast.parse(textwrap.dedent(text)).body[0].name]  # type: ignore[attr-defined]


def lowered_text(text: str, *args: Any, decorator: str | None = None) -> str:
    """The program as loops."""
    return str(emit(lower_to_loops(read(text, args)), decorator=decorator))


class Unchecked(AssertionError):
    """An index that compiled code would take as it is."""


class Strict(np.ndarray):
    """An array without Python's meaning of negative indices, and without NumPy's checks: the text has to look first."""

    def __getitem__(self, index: Any) -> Any:
        self._look_at(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._look_at(index)
        super().__setitem__(index, value)

    def _look_at(self, index: Any) -> None:
        items = index if isinstance(index, tuple) else (index,)
        for item, size in zip(items, self.shape, strict=False):
            if not isinstance(item, (int, np.integer)):
                return  # behind a slice or None it is another axis
            if not 0 <= item < size:
                raise Unchecked(index)


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """New arrays are strict, and what `np.empty` makes holds NaN, so that nothing reads it before it is stored."""
    empty, zeros = np.empty, np.zeros

    def poisonous(*args: Any, **kwargs: Any) -> np.ndarray:
        array = empty(*args, **kwargs)
        if array.dtype.kind in "fc":
            array.fill(np.nan)
        return array.view(Strict)

    np.empty, np.zeros = poisonous, lambda *args, **kwargs: zeros(*args, **kwargs).view(Strict)
    try:
        yield
    finally:
        np.empty, np.zeros = empty, zeros


def strict(arg: Any) -> Any:
    """The same memory as a strict array."""
    return arg.view(Strict) if isinstance(arg, np.ndarray) else arg


class Outcome:
    """What a call did: its value or error, and its arguments afterwards."""

    def __init__(self, func: Any, args: tuple[Any, ...]) -> None:
        self.args = tuple(_copied(arg) for arg in args)
        self.value: Any = None
        self.error: type[BaseException] | None = None
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # means of nothing
            try:
                self.value = func(*self.args)
            except Exception as error:
                self.error = type(error)


def _copied(arg: Any) -> Any:
    return arg.copy(order="K") if isinstance(arg, np.ndarray) else arg


def compiled(text: str, args: tuple[Any, ...]) -> Any:
    """The program as numba runs it, with every access checked once more."""
    source = emit(lower_to_loops(read(text, args)), decorator='njit(error_model="numpy", boundscheck=True)')
    return build_numba(source, from_start=True)


def uncompiled(text: str, args: tuple[Any, ...]) -> Any:
    """The same text as CPython runs it, where nothing may be read before it is stored."""
    func = build_python(emit(lower_to_loops(read(text, args))))

    def run(*args: Any) -> Any:
        with poisoned():
            return func(*map(strict, args))

    return run


def assert_same(text: str, *argument_lists: tuple[Any, ...], tolerance: float = 1e-12) -> None:
    """The compiled program does what NumPy does, for arguments of the same types."""
    sample = next((args for args in argument_lists if Outcome(python_function(text), args).error is None), None)
    assert sample is not None
    func, reference = compiled(text, sample), python_function(text)
    for args in argument_lists:
        ours, theirs = Outcome(func, args), Outcome(reference, args)
        assert ours.error is theirs.error, (ours.error, theirs.error, args)
        if theirs.error is None:
            _assert_equal(ours.value, theirs.value, tolerance)
            _assert_equal(ours.args, theirs.args, tolerance)


def _assert_equal(ours: Any, theirs: Any, tolerance: float) -> None:
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            _assert_equal(a, b, tolerance)
        return
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
