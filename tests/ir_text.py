"""Tests write small lowered programs as text: Python restricted to what the IR has, one node for one construct.

The types of names follow from an annotation of the parameters (`a: A2` is a matrix, `k: I`, `x: F`, `c: B`, `p: I1` an
integer vector, `l: L` a list of floats) and from what is assigned.
"""

import ast
import operator
import textwrap

import numpy as np

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
from tapegen.ir.types import BOOL, FLOAT, INT, Array, ListOf, Scalar, Type

_TYPES: dict[str, Type] = {
    "F": FLOAT,
    "I": INT,
    "B": BOOL,
    "L": ListOf(FLOAT),
    "I1": Array("int64", 1),
    **{f"A{rank}": Array("float64", rank) for rank in range(5)},
}
_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_UNARY = {ast.USub: operator.neg, ast.Not: operator.not_}
_BUILTINS = {"min": min, "max": max, "abs": abs, "len": len, "int": int, "print": print}


def function(text: str) -> Function:
    """The program of `def f(a: A1, n: I): ...` in lowered form."""
    (definition,) = ast.parse(textwrap.dedent(text)).body
    assert isinstance(definition, ast.FunctionDef)
    reader = _Reader()
    params = tuple(reader.declare(arg.arg, _TYPES[ast.unparse(arg.annotation)]) for arg in definition.args.args)
    body = reader.block(definition.body)
    if not body or not isinstance(body[-1], Return):
        body = (*body, Return((Const(None),)))
    return Function(definition.name, params, body)


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, Var] = {}

    def declare(self, name: str, type_: Type) -> Var:
        return self.names.setdefault(name, Var(name, type_))

    def block(self, nodes: list[ast.stmt]) -> Block:
        return tuple(self.statement(node) for node in nodes if not isinstance(node, ast.Pass))

    def statement(self, node: ast.stmt) -> Stmt:
        match node:
            case ast.Assign([ast.Name(name)], value):
                made = self.expression(value)
                return Assign((self.declare(name, made.type),), made)
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)):
                items = tuple(self.expression(value) for value in values)
                targets = tuple(self.declare(n.id, item.type) for n, item in zip(names, items))
                return Assign(targets, Tuple(items))
            case ast.Assign([ast.Subscript(ast.Name(name), index)], value):
                return Store(self.names[name], self.index(index), self.expression(value))
            case ast.AugAssign(ast.Subscript(ast.Name(name), index), ast.Add(), value):
                return Store(self.names[name], self.index(index), self.expression(value), accumulate=True)
            case ast.AugAssign(ast.Name(name), ast.Add(), value):
                return Store(self.names[name], (), self.expression(value), accumulate=True)
            case ast.Expr(ast.Call() as call):
                made = self.expression(call)
                assert isinstance(made, Call)
                return Effect(made)
            case ast.If(test, body, orelse):
                return If(self.expression(test), self.block(body), self.block(orelse))
            case ast.While(test, body):
                return While(self.expression(test), self.block(body))
            case ast.For(ast.Name(name), ast.Call(args=args), body):
                bounds = [self.expression(arg) for arg in args]
                if len(bounds) == 1:
                    bounds.insert(0, Const(0))
                if len(bounds) == 2:
                    bounds.append(Const(1))
                return For(self.declare(name, INT), *bounds, self.block(body))
            case ast.Break():
                return Break()
            case ast.Continue():
                return Continue()
            case ast.Raise():
                return Raise(ValueError)
            case ast.Return(ast.Tuple(values)):
                return Return(tuple(self.expression(value) for value in values))
            case ast.Return(value):
                return Return((self.expression(value),))
        raise ValueError(f"line {node.lineno} of the text is no program: {ast.unparse(node)}")

    def index(self, node: ast.expr) -> tuple[Expr | Slice, ...]:
        return tuple(self.item(item) for item in (node.elts if isinstance(node, ast.Tuple) else [node]))

    def item(self, node: ast.expr) -> Expr | Slice:
        if isinstance(node, ast.Slice):
            return Slice(*(part and self.expression(part) for part in (node.lower, node.upper, node.step)))
        return self.expression(node)

    def expression(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value):
                return Const(value)
            case ast.Name(name):
                return self.names[name]
            case ast.Tuple(items):
                return Tuple(tuple(self.expression(item) for item in items))
            case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(axis)):
                return Call(intrinsics.dim, (self.names[name], Const(axis)), (), INT)
            case ast.Subscript(ast.Name(name), index):
                return self.load(self.names[name], self.index(index))
            case ast.Attribute(ast.Name(name), "T"):
                return Call(intrinsics.transpose_view, (self.names[name],), (), self.names[name].type)
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return Const(-value)
            case ast.UnaryOp(op, inner):
                made = self.expression(inner)
                return Call(_UNARY[type(op)], (made,), (), made.type)
            case ast.BinOp(left, op, right):
                a, b = self.expression(left), self.expression(right)
                type_ = max((a.type, b.type), key=_width)
                return Call(_BINARY[type(op)], (a, b), (), FLOAT if isinstance(op, ast.Div) else type_)
            case ast.Compare(left, [op], [right]):
                return Call(_COMPARE[type(op)], (self.expression(left), self.expression(right)), (), BOOL)
            case ast.BoolOp(op, values):
                func = intrinsics.and_ if isinstance(op, ast.And) else intrinsics.or_
                return Call(func, tuple(self.expression(value) for value in values), (), BOOL)
            case ast.IfExp(test, a, b):
                then = self.expression(a)
                return Call(intrinsics.ifelse, (self.expression(test), then, self.expression(b)), (), then.type)
            case ast.Call(ast.Name(name), args):
                return self.builtin(name, tuple(self.expression(arg) for arg in args))
            case ast.Call(ast.Attribute(ast.Name("np"), name), args):
                return self.numpy(getattr(np, name), tuple(self.expression(arg) for arg in args))
        raise ValueError(f"line {node.lineno} of the text is no program: {ast.unparse(node)}")

    def builtin(self, name: str, args: tuple[Expr, ...]) -> Expr:
        if name in ("append", "pop", "item", "new_list", "set_item"):
            type_: Type = {"pop": FLOAT, "item": FLOAT, "new_list": ListOf(FLOAT)}.get(name, FLOAT)
            return Call(getattr(intrinsics, name), args, (), type_)
        return Call(_BUILTINS[name], args, (), INT if name in ("len", "int") else args[0].type)

    def numpy(self, func: object, args: tuple[Expr, ...]) -> Expr:
        if func in (np.zeros, np.empty, np.ones):
            rank = len(args[0].items) if isinstance(args[0], Tuple) else 1
            return Call(func, args, (), Array("float64", rank))
        if func in (np.dot, np.sum):
            return Call(func, args, (), FLOAT)
        if func in (np.ravel, np.diagonal):
            return Call(func, args, (), Array("float64", 1))
        if func is np.reshape:
            return Call(func, args, (), Array("float64", len(args[1].items) if isinstance(args[1], Tuple) else 1))
        return Call(func, args, (), max((arg.type for arg in args), key=_width))

    def load(self, array: Var, index: tuple[Expr | Slice, ...]) -> Load:
        assert isinstance(array.type, Array)
        rank = array.type.rank
        for item in index:
            if isinstance(item, Const) and item.value is None:
                rank += 1
            elif not isinstance(item, Slice) and isinstance(item.type, Scalar):
                rank -= 1
        dtype = array.type.dtype
        return Load(array, index, Array(dtype, rank) if rank else Scalar(dtype))


def _width(type_: Type) -> tuple[int, int]:
    if isinstance(type_, Array):
        return 2, type_.rank
    return (1 if type_ == FLOAT else 0), 0
