"""Transposition of linear rules: the pushforward where a rule has only a pullback, linear in its cotangents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.analysis.side_effects import effects_of
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.ir import traversal
from tapegen.ir.nodes import Block, Effect, Expr, Function, Return, Store, Var
from tapegen.rules.implicit import grad
from tapegen.rules.rule import signature_of


@functools.lru_cache(maxsize=256)
def transposed(pullback: Callable[..., Any], wrt: tuple[str, ...]) -> FunctionType:
    """The pushforward of a function whose pullback gives the cotangents of the arguments `wrt`.

    The sum of `x_bar * x_dot` over these arguments is linear in `out_bar`, with the tangent of the result as its
    gradient: the same at any `out_bar`.
    """
    given: list[str] = []
    passed: list[str] = []
    known: dict[str, Any] = {"pullback": pullback, "grad": grad, "paired": _paired}
    separated = False
    parameters = dict(signature_of(pullback).parameters)
    for name, parameter in parameters.items():
        named = parameter.kind is Parameter.KEYWORD_ONLY
        variadic = parameter.kind is Parameter.VAR_POSITIONAL
        if named and not separated:
            given.append("*")
        separated = separated or named or variadic
        stars = "*" if variadic else "**" if parameter.kind is Parameter.VAR_KEYWORD else ""
        passed.append(f"{name}={name}" if named else stars + name)
        if name == "out_bar":
            given.append(name)
        else:
            default = parameter.default is not Parameter.empty
            given.append(f"{name}=default_{name}" if default else stars + name)
            known[f"default_{name}"] = parameter.default
    last = [given.pop()] if given[-1].startswith("**") else []
    read = [f"{name}_dot" for name in wrt]
    bars = ", ".join(f"{name}_bar" for name in wrt)
    terms = " + ".join(f"paired({name}_bar, {name}_dot)" for name in wrt)
    text = f"""def pushforward({", ".join([*given, *read, *last])}):
    def along(out_bar):
        {bars} = pullback({", ".join(passed)})
        return {terms}
    return grad(along)(out_bar)
"""
    return function_from_text(text, known)


def _paired(bar: Any, dot: Any) -> Any:
    if bar is None:
        return 0.0
    if isinstance(bar, tuple | list):
        return sum([np.sum(np.real(part * of)) for part, of in zip(bar, dot, strict=True)])
    return np.sum(np.real(bar * dot))


def depend(exprs: Iterable[Expr], block: Block, given: Iterable[Var]) -> bool:
    """Whether expressions depend, after a block, on more of `given` than its shape."""
    last = Return(tuple(exprs))
    read = frozenset().union(*map(traversal.reads, (*block, last)))
    effects = effects_of(Function("pushforward", tuple(sorted(read, key=lambda var: var.name)), (*block, last)))
    found = set(given)
    inside = traversal.statements(block)
    before = 0
    while len(found) > before:
        before = len(found)
        for stmt in inside:
            if not _contents(stmt.headers) & found:
                continue
            found |= traversal.assigns(stmt)
            for part in traversal.statements((stmt,)):
                if isinstance(part, Store | Effect):
                    places = {part.array} if isinstance(part, Store) else traversal.reads(part)
                    roots = frozenset().union(*map(effects.roots, places))
                    found |= {var for var in read if effects.roots(var) & roots}
    return bool(_contents(last.values) & found)


def _contents(exprs: Iterable[Any]) -> set[Var]:
    return {var for expr in exprs for var in traversal.reads_by_kind(expr)[0]}
