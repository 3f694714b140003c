"""Rule application to IR operands, shared by forward and reverse mode."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.analysis.activity import involves_complex
from tapegen.analysis.side_effects import effects_of
from tapegen.analysis.value_ranges import Ranges
from tapegen.errors import BadArgument, MissingRule, NotDifferentiable, Span, TapegenError
from tapegen.frontend.templates.builtin_functions import is_own
from tapegen.frontend.templates.cache import expand_template
from tapegen.frontend.values.pytree import Abstract, Leaf, StaticValue, Struct, leaves_of
from tapegen.ir import builders, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    Function,
    Load,
    Raise,
    Return,
    Stmt,
    Store,
    Tuple,
    Var,
)
from tapegen.ir.printer import callable_text
from tapegen.ir.types import Array, Scalar
from tapegen.rules.registry import refusal_of, rule_of
from tapegen.rules.rule import Rule, positional_names, signature_of, wrong_count

_RAISES_INSTEAD = frozenset({operator.truediv, math.log, math.log2, math.log10, math.log1p, math.exp, math.atanh})
"""Functions of Python floats that raise where a partial derivative would not be finite."""


def rule_for(call: Call, stmt: Stmt) -> Rule:
    """The rule of a call on active values.

    Raises
    ------
    MissingRule
        If there is none.
    """
    rule = rule_of(call.func)
    refusal = refusal_of(call.func)
    if rule is None and refusal is not None:
        raise MissingRule(
            f"{callable_text(call.func)} is not differentiated: {refusal.reason}", refusal.advice, stmt.origin
        )
    if rule is None:
        raise MissingRule(
            f"{callable_text(call.func)} has no derivative rule.",
            "Write it with functions that have one, register a rule (tg.partials, tg.linear, tg.pullback, "
            "tg.expands), or declare that it has no derivative (tg.inactive).",
            stmt.origin,
        )
    refuse_complex(call, rule, stmt)
    for name, _ in call.kwargs:
        if rule.body is not None and not _takes(rule.body, name):
            raise NotDifferentiable(
                f"{callable_text(call.func)} has no derivative rule with '{name}='.",
                "Leave it out, or write what it does.",
                stmt.origin,
            )
    return rule


@functools.cache
def _takes(body: Callable[..., Any], name: str) -> bool:
    """Whether the body of a rule has a parameter."""
    parameters = inspect.signature(body).parameters
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def refuse_complex(call: Call, rule: Rule, stmt: Stmt) -> None:
    """Refuse a call on complex values that its rule does not cover (docs/complex.md)."""
    if not rule.of_complex and involves_complex(call):
        raise MissingRule(
            f"{callable_text(call.func)} has a derivative rule for real numbers only, and is complex here.",
            "Write it with functions that have one for complex numbers (docs/rules.md), or with real and imaginary "
            "parts; a rule of your own declares that by of_complex=True.",
            stmt.origin,
        )


def inlined(
    body: Callable[..., Any] | None,
    args: tuple[Expr, ...],
    kwargs: Mapping[str, Any],
    names: NameSupply,
    origin: Span | None,
) -> tuple[Block, Abstract]:
    """Inline the body of a rule for these operands; expressions that are read once are nested where they are read."""
    assert body is not None
    try:
        block, value = expand_template(body, args, kwargs, names, _folded)
        _refuse_stores(body, block, (*args, *kwargs.values()), origin)
        return block, value
    except TapegenError as error:
        raise refused_at(error, origin) from error.__cause__


def _refuse_stores(body: Callable[..., Any], block: Block, operands: tuple[Any, ...], origin: Span | None) -> None:
    """Refuse a rule that stores into its arguments: the program, or its caller, reads them later."""
    if not block or not any(isinstance(stmt, Store) for stmt in traversal.statements(block)):
        return
    given = {var for operand in operands if isinstance(operand, (Var, Tuple)) for var in traversal.free_vars(operand)}
    params = tuple(sorted((var for var in given if isinstance(var.type, Array)), key=lambda var: var.name))
    stored = effects_of(Function(body.__name__, params, (*block, Return(())))).mutated_params
    if stored:
        raise BadArgument(
            f"the rule {body.__name__} stores into an array that it is given.",
            "Copy the array in the rule (x_dot = x_dot.copy()), and store into the copy.",
            origin,
        )


def refused_at(error: TapegenError, origin: Span | None) -> TapegenError:
    """Report what one of tapegen's own rules refuses at the user's statement, not in the text of the rule."""
    if error.span is not None and not is_own(error.span.file):
        return error
    return type(error)(error.reason, error.advice, origin)


def local_partials(
    call: Call, rule: Rule, target: Var, stmt: Stmt, active: Callable[[Expr], bool], names: NameSupply
) -> tuple[Block, list[tuple[Var, Expr]]]:
    """The active operands of an element-wise call, each with its partial derivative.

    The partial of a constant divided by a value contains no division where the constant is a power of two, so that
    there is no further rounding: `-out * out` for `1.0 / x`.
    """
    match call:
        case Call(operator.truediv | np.divide, (Const(number), Var() as x), ()):
            inverse = _exact_inverse(number)
            if inverse is not None:
                return (), [(x, builders.mul(Const(-inverse), builders.mul(target, target)))]
    assert rule.body is not None
    extra = {"out": target} if rule.reads("out") else {}
    block, value = inlined(rule.body, call.args, dict(call.kwargs) | extra, names, stmt.origin)
    partials = list(value.children) if isinstance(value, Struct) else [value]
    _check_partials(rule, len(partials), stmt)
    bound = bind_arguments(rule.body, call, stmt)
    order = rule.wrt or positional_names(rule.body)[: len(partials)]
    for name in positional_names(rule.body):
        if name not in order and name in bound and active(bound[name]):
            raise _no_derivative(call, name, stmt)
    wanted: list[tuple[Var, Expr]] = []
    for name, partial in zip(order, partials, strict=True):
        arg = bound.get(name)
        expr = expression_of(partial)
        if arg is not None and expr is not None and not builders.is_const(expr, 0.0) and active(arg):
            assert isinstance(arg, Var)
            wanted.append((arg, expr))
    return block, wanted


def _exact_inverse(number: object) -> float | None:
    """The inverse of a power of two, if both are far from the ends of the range of floats."""
    if not isinstance(number, (int, float)) or not builders.is_exact(number):
        return None
    return 1.0 / number if 2.0**-100 < abs(number) < 2.0**100 else None


def _check_partials(rule: Rule, count: int, stmt: Stmt) -> None:
    """Refuse a rule that returns more or fewer partial derivatives than there are arguments."""
    assert rule.body is not None
    wrong = wrong_count(rule, count)
    if wrong is not None:
        raise BadArgument(*wrong, stmt.origin)


def cotangents_of(rule: Rule, value: Abstract, stmt: Stmt) -> list[Abstract]:
    """The results of a linear or pullback rule, one for each argument of `wrt`."""
    found = list(value.children) if len(rule.wrt) > 1 and isinstance(value, Struct) else [value]
    wrong = wrong_count(rule, len(found))
    if wrong is not None:
        raise BadArgument(*wrong, stmt.origin)
    return found


def has_pole(call: Call, rule: Rule, again: bool) -> bool:
    """Whether a partial derivative of this call can fail to be finite where the call itself does not raise.

    Where the derivative is differentiated `again`, whether a derivative of any order can.
    """
    python = all(isinstance(arg.type, Scalar) and arg.type.python for arg in call.args)
    raises = python and call.func in _RAISES_INSTEAD
    nonfinite = rule.nonfinite or (rule.poles and involves_complex(call))
    return nonfinite and not raises and not _is_smooth(call, again)


def guards(
    target: Var, call: Call, pole: bool, block: Block, partials: Iterable[Expr], ranges: Ranges, aside: Set[Var]
) -> list[bool]:
    """For each partial derivative of `target = call` whether a zero cotangent must win over it.

    It must where the derivative can fail to be finite: at a pole of the function, unless the bounds of its operands
    exclude it, or because an operand is not finite in a result that the program masks out (one of `aside`).  The
    partial derivatives may read what `block` computes.
    """
    if pole and not ranges.has_finite_partials(call):
        return [True for _ in partials]
    if target not in aside:
        return [False for _ in partials]
    made = frozenset().union(*map(traversal.reads, block))
    return [any(map(ranges.may_be_nonfinite, made | traversal.free_vars(partial))) for partial in partials]


def refuse_other_active(
    call: Call, rule: Rule, bound: Mapping[str, Expr], stmt: Stmt, active: Callable[[Expr], bool]
) -> None:
    """Refuse an active argument that a linear or pullback rule returns no derivative for."""
    shape_only = traversal.shape_only_argument(call.func)
    for position, (name, arg) in enumerate(bound.items()):
        if position == shape_only or name in rule.wrt:
            continue
        if any(active(part) for part in traversal.reads_by_kind(arg)[0]):
            raise _no_derivative(call, name, stmt)


def _no_derivative(call: Call, name: str, stmt: Stmt) -> MissingRule:
    return MissingRule(
        f"{call.func.__name__} has no derivative with respect to '{name}'",
        "Keep that argument independent of the inputs of interest.",
        stmt.origin,
    )


def _folded(block: Block, value: Abstract) -> tuple[Block, Abstract]:
    """Nest intermediate results that are read once, so that partials are single expressions."""
    if any(not isinstance(stmt, Assign) or len(stmt.targets) != 1 for stmt in block):
        return block, value
    results = [leaf.expr for leaf in leaves_of(value) if isinstance(leaf, Leaf)]
    reads: Counter[Var] = Counter()
    based: set[Var] = set()
    for expr in (*results, *(header for stmt in block for header in stmt.headers)):
        for part in traversal.subexpressions(expr):
            if isinstance(part, Var):
                reads[part] += 1
            elif isinstance(part, Load):
                based.add(part.array)
    inlined: dict[Var, Expr] = {}
    kept: list[Stmt] = []
    for stmt in block:
        assert isinstance(stmt, Assign)
        new = traversal.map_expr(traversal.substitute(stmt.value, inlined), builders.simplified)
        (target,) = stmt.targets
        if reads[target] == 1 and target not in based:
            inlined[target] = new
        else:
            kept.append(Assign(stmt.targets, new, stmt.origin))
    return tuple(kept), _substituted(value, inlined)


def _substituted(value: Abstract, mapping: dict[Var, Expr]) -> Abstract:
    if isinstance(value, Leaf):
        return Leaf(traversal.map_expr(traversal.substitute(value.expr, mapping), builders.simplified))
    if isinstance(value, Struct):
        return replace(value, children=tuple(_substituted(child, mapping) for child in value.children))
    return value


def expression_of(value: Abstract) -> Expr | None:
    if isinstance(value, Leaf):
        return value.expr
    if isinstance(value, StaticValue):
        return None if value.value is None else Const(value.value)
    raise AssertionError("a rule returned a structure where one value was expected")


def bind_arguments(body: Callable[..., Any], call: Call, stmt: Stmt) -> dict[str, Expr]:
    """The arguments of a call by the parameter names of the rule body, in the order of its parameters."""
    names = _plain_names(body)
    if not call.kwargs and len(call.args) <= len(names):
        return dict(zip(names, call.args, strict=False))
    try:
        bound = signature_of(body).bind_partial(*call.args, **dict(call.kwargs)).arguments
    except TypeError as error:
        raise MissingRule(
            f"{call.func.__name__} has no derivative rule for these arguments ({error})", "Leave them out.", stmt.origin
        ) from None
    out: dict[str, Expr] = {}
    for name, value in bound.items():
        out[name] = Tuple(value) if isinstance(value, tuple) else value  # a tuple: *args
    return out


@functools.cache
def _plain_names(body: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a body that accept one positional argument each."""
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in signature_of(body).parameters.values() if p.kind in plain)


def _is_smooth(call: Call, again: bool) -> bool:
    """Whether a call is a power with a constant exponent whose derivative (of any order: `again`) is always finite."""
    if call.func not in (operator.pow, np.power, math.pow) or not isinstance(call.args[1], Const):
        return False
    exponent = call.args[1].value
    if not isinstance(exponent, (int, float)) or (again and exponent % 1 != 0):
        return False
    return exponent >= 1 or exponent == 0


def never_raising(node: Any) -> Any:
    """Division and power of Python floats that give inf where Python raises: a derivative may be infinite."""
    if isinstance(node, Call) and isinstance(node.type, Scalar) and node.type.python:
        if node.func is operator.truediv and (not isinstance(node.args[1], Const) or node.args[1].value == 0):
            return Call(np.divide, node.args, (), Scalar(node.type.dtype, False))
        if node.func is operator.pow:
            return Call(np.power, node.args, (), Scalar(node.type.dtype, False))
    return node


def needed(block: Block, exprs: list[Expr]) -> Block:
    """The statements of an inlined body that the wanted results depend on."""
    wanted: set[Var] = set()
    for expr in exprs:
        wanted |= traversal.free_vars(expr)
    kept: list[Stmt] = []
    for stmt in reversed(block):
        inner = list(traversal.statements((stmt,)))
        if not any(isinstance(part, (Raise, Effect)) for part in inner):
            changed = {var for part in inner for var in part.targets}
            # a store may write through a view of what is wanted
            if not changed & wanted and not any(isinstance(part, Store) for part in inner):
                continue
        kept.append(stmt)
        for part in inner:
            for header in part.headers:
                wanted |= traversal.free_vars(header)
    return tuple(reversed(kept))
