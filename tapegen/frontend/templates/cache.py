"""Template cache: lowered rule bodies and templates, reused for operands of the same types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tapegen.errors import TapegenError
from tapegen.frontend.lower import inline_call, inline_guarded, renamed
from tapegen.frontend.values.assumptions import Guard, guards_hold
from tapegen.frontend.values.pytree import Abstract, Leaf, leaves_of
from tapegen.ir import traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Block, Const, Expr, Var
from tapegen.rules.registry import generation

Finish = Callable[[Block, Abstract], tuple[Block, Abstract]]

_MOST = 4096
"""Limit of cached templates."""

_PLAIN = (bool, int, float, complex, str, type, type(None))
"""Types of constants that are equal if their printed forms are equal."""


@dataclass(frozen=True, slots=True)
class _Template:
    """The lowered statements of a call: operands and new values have placeholder names."""

    block: Block
    value: Abstract
    fresh: tuple[tuple[str, Var | None], ...]  # requested names in order, and the values that remain
    guards: tuple[Guard, ...]


_TEMPLATES: dict[Any, _Template] = {}


def forget() -> None:
    """Clear the cache: for callers that change tapegen itself at run time."""
    _TEMPLATES.clear()


def expand_template(
    func: Callable[..., Any],
    args: Sequence[Expr],
    kwargs: Mapping[str, Expr],
    names: NameSupply,
    finish: Finish | None = None,
    *,
    rules: bool = True,
) -> tuple[Block, Abstract]:
    """The same as `inline_call`, with `finish` applied to what it returns.

    `finish` must not depend on names.  A template for operands of the same types is reused as long as all values read
    for it, such as global variables, are unchanged.
    """
    given = (*args, *kwargs.values())
    if all(map(_is_plain, given)):
        operands = list(dict.fromkeys(var for expr in given for var in traversal.occurrences(expr)))
        places = {var: Var(f"operand_{k}", var.type) for k, var in enumerate(operands)}
        known = tuple(traversal.substitute(expr, places) for expr in given)
        key = (func, tuple(kwargs), known, finish, rules, generation())
        template = _TEMPLATES.get(key)
        if template is None or not guards_hold(template.guards):
            keywords = dict(zip(kwargs, known[len(args) :], strict=True))
            template = _lowered_template(func, known[: len(args)], keywords, finish, rules)
            if template is not None:
                if len(_TEMPLATES) >= _MOST:
                    _TEMPLATES.clear()
                _TEMPLATES[key] = template
        if template is not None:
            return _instantiated(template, dict(zip(places.values(), operands, strict=True)), names)
    block, value = inline_call(func, args, kwargs, names, rules=rules)
    return (block, value) if finish is None else finish(block, value)


def _is_plain(expr: Expr) -> bool:
    if type(expr) is Var:
        return True
    return all(type(part) is not Const or type(part.value) in _PLAIN for part in traversal.subexpressions(expr))


class _Recorder(NameSupply):
    """A name supply of placeholder names, which records the requested names."""

    def __init__(self) -> None:
        super().__init__()
        self.bases: list[str] = []

    def fresh(self, base: str) -> str:
        self.bases.append(base)
        return _name(len(self.bases) - 1)


def _lowered_template(
    func: Callable[..., Any], args: Sequence[Expr], kwargs: Mapping[str, Expr], finish: Finish | None, rules: bool
) -> _Template | None:
    """A new template; None where the function is refused, as the error has to name the actual operands."""
    names = _Recorder()
    try:
        block, value, guards = inline_guarded(func, args, kwargs, names, rules=rules)
        if finish is not None:
            block, value = finish(block, value)
    except TapegenError:
        return None
    exprs = [leaf.expr for leaf in leaves_of(value) if isinstance(leaf, Leaf)]
    left = {var for expr in exprs for var in traversal.free_vars(expr)}
    left = left.union(*map(traversal.reads, block), *map(traversal.assigns, block))
    by_name = {var.name: var for var in left}
    fresh = tuple((base, by_name.get(_name(k))) for k, base in enumerate(names.bases))
    return _Template(block, value, fresh, guards)


def _instantiated(template: _Template, operands: dict[Var, Var], names: NameSupply) -> tuple[Block, Abstract]:
    for base, var in template.fresh:
        name = names.fresh(base)
        if var is not None:
            operands[var] = Var(name, var.type)
    return (
        traversal.rename_block(template.block, operands),
        renamed(template.value, lambda expr: traversal.substitute(expr, operands)),
    )


def _name(number: int) -> str:
    return f"#{number}"
