"""Nesting limits: expressions are kept within what CPython can parse, and shared operands get lines of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tapegen.errors import CompileLimit, Span
from tapegen.ir import intrinsics, nodes, traversal

MAX_NESTING = 30
MAX_CHAIN = 100
_SMALL = 25  # expressions with fewer parts than this cannot be too deep
_SPECIAL = frozenset(
    {intrinsics.strong_mul, intrinsics.guarded, intrinsics.fstring}
)  # unless they are printed as more than a call


@dataclass(frozen=True, slots=True)
class _Part:
    """A rebuilt part, the nesting depth of its brackets, and the length of the operator chain at its left edge."""

    expr: Any
    nesting: int = 0
    chain: int = 0


class Shortener:
    """CopyPropagation parts of an expression to assignments before its statement.

    A sum of thousands of terms or hundreds of parentheses exceeds CPython's parser.  Parts are taken out
    unchanged, so rounding does not change.

    Parameters
    ----------
    fresh : callable
        Returns the name of a new variable.
    is_binary : callable
        Whether a call is printed as a binary operator.
    """

    def __init__(self, fresh: Callable[[], str], is_binary: Callable[[Any], bool]) -> None:
        self.fresh = fresh
        self.is_binary = is_binary

    def __call__(self, expr: Any, span: Span | None) -> tuple[list[nodes.Assign], Any]:
        """The assignments and the remaining expression."""
        if not self._concerns(expr):
            return [], expr
        before: list[nodes.Assign] = []

        def take_out(part: _Part, lazy: bool) -> _Part:
            if lazy:
                raise CompileLimit(
                    "This expression is too deeply nested to be written out, and it is evaluated only sometimes.",
                    "Assign parts of it to variables in statements of their own.",
                    span,
                )
            var = nodes.Var(self.fresh(), part.expr.type)
            before.append(nodes.Assign((var,), part.expr, span))
            return _Part(var)

        work: list[tuple[Any, bool, bool]] = [(expr, False, False)]
        done: list[_Part] = []
        while work:
            node, lazy, ready = work.pop()
            parts = traversal.parts(node)
            if not parts:
                done.append(_Part(node))
            elif not ready:
                work.append((node, lazy, True))
                work.extend((part, lazy or _is_lazy(node, k), False) for k, part in reversed(list(enumerate(parts))))
            else:
                inner = done[-len(parts) :]
                del done[-len(parts) :]
                done.append(self._rebuilt(node, inner, lazy, take_out))
        return before, done[0].expr

    def _concerns(self, expr: Any) -> bool:
        if type(expr) is nodes.Var or type(expr) is nodes.Const:
            return False
        return len(traversal.subexpressions(expr)) > _SMALL or not traversal.callees(expr).isdisjoint(_SPECIAL)

    def _rebuilt(self, node: Any, inner: list[_Part], lazy: bool, take_out: Callable[[_Part, bool], _Part]) -> _Part:
        binary = isinstance(node, nodes.Call) and self.is_binary(node.func)
        if (
            isinstance(node, nodes.Call)
            and node.func is intrinsics.strong_mul
            and traversal.parts(inner[0].expr)
            and not lazy
        ):
            inner[0] = take_out(inner[0], lazy)  # it is printed twice
        for position, part in enumerate(inner):
            deeper = 0 if isinstance(node, nodes.Slice) or (binary and position == 0) else 1
            quoted = isinstance(node, nodes.Call) and node.func is intrinsics.fstring and _has_text(part.expr)
            too_deep = part.nesting + deeper > MAX_NESTING and not isinstance(part.expr, nodes.Slice)
            if quoted or too_deep or (binary and position == 0 and part.chain >= MAX_CHAIN):
                inner[position] = take_out(part, lazy or _is_lazy(node, position))
        nesting = max(
            part.nesting + (0 if isinstance(node, nodes.Slice) or (binary and position == 0) else 1)
            for position, part in enumerate(inner)
        )
        return _Part(_with_parts(node, [part.expr for part in inner]), nesting, inner[0].chain + 1 if binary else 0)


def _is_lazy(node: Any, position: int) -> bool:
    """Whether the part at this position is evaluated conditionally."""
    if not isinstance(node, nodes.Call):
        return False
    if node.func in (intrinsics.and_, intrinsics.or_, intrinsics.strong_mul):
        return position > 0
    return (node.func is intrinsics.ifelse and position > 0) or (node.func is intrinsics.guarded and position == 0)


def with_format(expr: Any) -> tuple[Any, str]:
    """The contents of a placeholder, before and after the colon: `x` and `.3f` of `format(x, ".3f")`."""
    match expr:
        case nodes.Call(func, (value, nodes.Const(str() as spec))) if func is format and not set(spec) & set("{}\"'\\"):
            return value, spec
    return expr, ""


def _has_text(expr: Any) -> bool:
    """Whether a placeholder of an f-string would contain another string."""
    if isinstance(expr, nodes.Const):
        return False
    expr = with_format(expr)[0]
    return any(isinstance(p, nodes.Const) and isinstance(p.value, str) for p in traversal.subexpressions(expr))


def _with_parts(node: Any, parts: list[Any]) -> Any:
    if all(new is old for new, old in zip(parts, traversal.parts(node), strict=True)):
        return node
    match node:
        case nodes.Call(_, args, kwargs):
            named = tuple((name, part) for (name, _), part in zip(kwargs, parts[len(args) :], strict=True))
            return replace(node, args=tuple(parts[: len(args)]), kwargs=named)
        case nodes.Tuple():
            return nodes.Tuple(tuple(parts))
        case nodes.Load():
            return replace(node, array=parts[0], index=tuple(parts[1:]))
        case nodes.Slice(lo, hi, step):
            found = iter(parts)
            return nodes.Slice(*(None if old is None else next(found) for old in (lo, hi, step)))
    raise AssertionError(type(node).__name__)
