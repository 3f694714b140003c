"""Template inlining: functions that compiled code cannot call, expanded into what it supports.

Functions of users that have rules, and library functions that have templates (`templates`, `linalg_templates`).  Always
legal, and necessary: a function with neither template nor lowering cannot be compiled.

Before::

    def f(x: "f8[:]"):
        y = np.geomspace(1.0, 2.0, 3)
        return y

After::

    def f(x):
        ratio = 2.0 / 1.0
        share = np.linspace(0.0, 1.0, 3, endpoint=True)
        ratio_to_share = ratio**share
        product = 1.0 * ratio_to_share
        t = product
        y = t
        return y
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.analysis.activity import involves_complex
from tapegen.errors import NoCompiledForm, TapegenError
from tapegen.frontend.calls.custom_rules import own_rule
from tapegen.frontend.templates.cache import expand_template as from_template
from tapegen.frontend.values.pytree import Abstract, Leaf, StaticValue, Struct
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import TEMPORARY, NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.printer import callable_text
from tapegen.ir.types import BOOL, INT, Array, Scalar, TupleOf, Type
from tapegen.loops.legalize.registry import FILL, LAZY, REWRITE, SCALAR, SEVERAL
from tapegen.loops.legalize.scalar_ops import OPERATIONS
from tapegen.loops.library import linalg_templates, templates  # noqa: F401  (register templates)
from tapegen.rules.registry import rule_of
from tapegen.rules.templates import chooser_of
from tapegen.transform.autodiff.expand_formulas import placed


def inline_templates(function: Function) -> Function:
    """The same program without such calls; those that cannot be inlined remain.

    Raises
    ------
    NoCompiledForm
        If a function whose rule is for real numbers has complex operands: its template may be for real numbers too.
    """
    called = frozenset[Any]().union(*map(traversal.calls, function.body))
    odd = {func for func in called if not _is_plain(func)}
    calls = [(call, stmt) for stmt in _calling(function.body, odd) for call in _calls(stmt) if call.func in odd]
    for call, stmt in calls:
        rule = rule_of(call.func) if involves_complex(call) else None
        if rule is not None and not rule.of_complex:
            raise NoCompiledForm(f"{callable_text(call.func)} of complex numbers", stmt.origin)
    if not any(_body_of(call) for call, _ in calls):
        return function
    used = {param.name for param in function.params} | {name for name, _ in function.globals} | {function.name}
    used |= {var.name for stmt in traversal.statements(function.body) for var in stmt.targets}
    return traversal.with_body(function, _block(function.body, NameSupply(used)))


def _is_plain(func: Any) -> bool:
    """Whether a function is an operation on scalars, real or complex, that has no template."""
    if func not in OPERATIONS or chooser_of(func) is not None:
        return False
    rule = rule_of(func)
    return rule is None or rule.of_complex


def _body_of(call: Call) -> Callable[..., Any] | None:
    """The template that is inlined for a call."""
    func: Any = call.func
    choose = chooser_of(func)
    if choose is not None:
        return choose(call)
    if func in OPERATIONS or isinstance(func, Routine):
        return None
    if any(func in table for table in (SCALAR, LAZY, FILL, SEVERAL, REWRITE)):
        return None
    own = own_rule(func)
    if own is not None and isinstance(func, FunctionType) and own.kind != "expands":
        return func
    rule = rule_of(func)
    return rule.body if rule is not None and rule.kind == "expands" else None


def _calling(block: Block, functions: Set[Any]) -> list[Stmt]:
    """The statements, nested ones included, that call some functions."""
    concerned = [stmt for stmt in block if not functions.isdisjoint(traversal.calls(stmt))]
    return [stmt for stmt in traversal.statements(concerned) if not functions.isdisjoint(traversal.calls(stmt))]


def _calls(stmt: Stmt) -> Iterator[Call]:
    for header in stmt.headers:
        yield from [part for part in traversal.subexpressions(header) if type(part) is Call]


def _block(block: Block, names: NameSupply) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = tuple(_block(part, names) for part in stmt.blocks)
        new = traversal.with_blocks(stmt, inner) if inner else stmt
        if any(map(_body_of, _calls(stmt))):
            before, new = _apart(new, names)
            if isinstance(new, While):  # the test is evaluated in every iteration
                leave = If(Call(operator.not_, (new.test,), (), BOOL), (Break(stmt.origin),), (), stmt.origin)
                new = replace(new, test=Const(True), body=(*before, leave, *new.body))
            else:
                out += before
        out.append(new)
    return tuple(out)


def _apart(stmt: Stmt, names: NameSupply) -> tuple[list[Stmt], Stmt]:
    """The calls of a statement, innermost first, before it; conditional calls under their condition."""
    out = _Out(names, stmt, [])
    match stmt:
        case Assign(_, value):
            stmt = replace(stmt, value=out.moved(value))
        case If(test) | While(test):
            stmt = replace(stmt, test=out.moved(test))
        case Store(index=index, value=value):
            value = out.moved(value)
            stmt = replace(stmt, index=tuple(map(out.moved, index)), value=value)
        case For(start=start, stop=stop, step=step):
            stmt = replace(stmt, start=out.moved(start), stop=out.moved(stop), step=out.moved(step))
        case Return(values):
            stmt = replace(stmt, values=tuple(map(out.moved, values)))
    return out.before, stmt


@dataclass(frozen=True, slots=True)
class _Out:
    """Inlines the calls of one statement."""

    names: NameSupply
    stmt: Stmt
    before: list[Stmt]

    def moved(self, expr: Any) -> Any:
        """An expression, or a part of an index, without the inlined calls."""
        match expr:
            case Tuple(items):
                return Tuple(tuple(map(self.moved, items)))
            case Load(array, index, type_):
                return Load(array, tuple(map(self.moved, index)), type_)
            case Slice(lo, hi, step):
                return Slice(*(None if part is None else self.moved(part) for part in (lo, hi, step)))
        if not isinstance(expr, Call):
            return expr
        if expr.func in (intrinsics.and_, intrinsics.or_, intrinsics.ifelse) and any(map(_has_calls, expr.args[1:])):
            return self._conditional(expr)
        call = replace(
            expr,
            args=tuple(map(self.moved, expr.args)),
            kwargs=tuple((name, self.moved(value)) for name, value in expr.kwargs),
        )
        body = _body_of(call)
        found = _value_of(call, body, self.names, self.stmt) if body is not None else None
        if found is None:
            return call
        block, value = found
        self.before.extend(block)
        return value

    def _conditional(self, expr: Call) -> Expr:
        """`a and b`, `a or b` or `b if a else c` as a branch."""
        first, *rest = expr.args
        test = self._named(self.moved(first), BOOL)
        if expr.func is intrinsics.ifelse:
            sides = (rest[0], rest[1])
        else:
            more = rest[0] if len(rest) == 1 else Call(expr.func, tuple(rest), (), expr.type)
            sides = (more, test) if expr.func is intrinsics.and_ else (test, more)
        result = Var(self.names.fresh(TEMPORARY), expr.type)
        blocks = []
        for side in sides:
            inner = _Out(self.names, self.stmt, [])
            value = inner.moved(side)
            blocks.append((*inner.before, Assign((result,), value, self.stmt.origin)))
        self.before.append(If(test, blocks[0], blocks[1], self.stmt.origin))
        return result

    def _named(self, expr: Expr, type_: Type) -> Expr:
        if isinstance(expr, (Var, Const)):
            return expr
        var = Var(self.names.fresh(TEMPORARY), type_)
        self.before.append(Assign((var,), expr, self.stmt.origin))
        return var


def _has_calls(expr: Expr) -> bool:
    return any(isinstance(part, Call) and _body_of(part) is not None for part in traversal.subexpressions(expr))


def _value_of(call: Call, body: Callable[..., Any], names: NameSupply, stmt: Stmt) -> tuple[Block, Expr] | None:
    """The inlined statements of a call and its value; None where it cannot be inlined."""
    arguments: list[Stmt] = []

    def atom(expr: Expr) -> Expr:
        if isinstance(expr, Tuple):
            return Tuple(tuple(map(atom, expr.items)))
        if isinstance(expr, Call) and expr.func is intrinsics.shape and isinstance(expr.args[0].type, Array):
            array = atom(expr.args[0])
            return Tuple(tuple(Call(intrinsics.dim, (array, Const(k)), (), INT) for k in range(expr.args[0].type.rank)))
        if isinstance(expr, (Var, Const)):
            return expr
        var = Var(names.fresh(TEMPORARY), expr.type)
        arguments.append(Assign((var,), expr, stmt.origin))
        return var

    args = tuple(map(atom, call.args))
    kwargs = {name: atom(value) for name, value in call.kwargs}
    try:
        block, value = from_template(body, args, kwargs, names, rules=False)
    except TapegenError:
        return None
    expr = _expression(value)
    if expr is None:
        return None
    expr = _in_type(expr, call.type)
    if isinstance(expr, Tuple):
        return _block((*arguments, *placed(block, stmt)), names), expr
    if isinstance(call.type, Array) and call.type.rank == 0 and isinstance(expr.type, Scalar):
        expr = Call(np.full, (Tuple(()), expr), (), call.type)
    result = Var(names.fresh(TEMPORARY), call.type)
    return _block((*arguments, *placed(block, stmt), Assign((result,), expr, stmt.origin)), names), result


def _in_type(expr: Expr, type_: Type) -> Expr:
    """The value of a formula in the precision of the function's results, which may be higher."""
    if isinstance(expr, Tuple) and isinstance(type_, TupleOf):
        return Tuple(tuple(map(_in_type, expr.items, type_.items)))
    return builders.cast(expr, type_.dtype) if isinstance(type_, (Array, Scalar)) else expr


def _expression(value: Abstract) -> Expr | None:
    if isinstance(value, Leaf):
        return value.expr
    if isinstance(value, StaticValue):
        return Const(value.value)
    if isinstance(value, Struct) and value.kind == "tuple":
        items = [_expression(child) for child in value.children]
        return None if None in items else Tuple(tuple(item for item in items if item is not None))
    return None
