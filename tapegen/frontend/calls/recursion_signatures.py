"""Specialization signatures of recursive functions, and the state of their analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapegen.errors import CompileLimit, NotDifferentiable, Span, TapegenError
from tapegen.frontend.mutation.caller_objects import MutationFacts
from tapegen.frontend.values.context import Context, NeedsConstant
from tapegen.frontend.values.materialize import expr_of
from tapegen.frontend.values.pytree import UNKNOWN, Itself, Leaf, StaticValue, Struct
from tapegen.frontend.values.state import Captured, Frame, State, is_number, known_value
from tapegen.frontend.values.type_sets import several_kinds
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Block, Expr, Routine, Var
from tapegen.ir.types import Array, ListOf, Scalar, TupleOf, Type

MOST = 24
"""Limit of signatures of one function, for different types and options."""

Path = tuple[Any, ...]


@dataclass(slots=True)
class Recursion:
    """Facts about functions and loops of a program that are kept between lowering attempts.

    Attributes
    ----------
    called : set
        Functions that are routines.
    refused : dict
        Functions that cannot be routines, with the reason.
    fixed : dict
        Their parameters that must be known when compiling.
    written_out : dict
        Loops that must be unrolled, since no growing list can hold their items, and the reason.
    parts : bool
        Whether the program stores into real or imaginary parts of complex arrays.
    written : MutationFacts
        Objects of the caller that are written.
    """

    called: set[Any] = field(default_factory=set)
    refused: dict[Any, TapegenError] = field(default_factory=dict)
    fixed: dict[Any, set[Path]] = field(default_factory=dict)
    written_out: dict[Any, TapegenError] = field(default_factory=dict)
    parts: bool = False
    written: MutationFacts = field(default_factory=MutationFacts)


@dataclass(eq=False, slots=True)
class Parameter:
    """A parameter: its path, and its variable in the body, which is a copy if the body writes into it."""

    path: Path
    var: Var
    place: Var


@dataclass(slots=True)
class Summary:
    """The effect of a routine call.  The leaves of the result are results of the routine, or arguments."""

    output: Any = None  # None: not known yet
    sources: tuple[tuple[str, int], ...] = ()
    types: tuple[Type, ...] = ()
    kinds: tuple[frozenset[Type], ...] = ()
    written: tuple[int, ...] = ()
    shares: tuple[frozenset[int], ...] = ()


@dataclass(eq=False, slots=True)
class Body:
    """The parts of a finished program: names are final, except for free variables."""

    params: tuple[Var, ...]
    block: Block
    values: tuple[Expr, ...]
    supply: NameSupply
    origin: Span | None


@dataclass(eq=False, slots=True)
class Form:
    """A specialization: a function for one set of types and options."""

    identity: Any
    key: Any
    routine: Routine
    summary: Summary = field(default_factory=Summary)
    body: Body | None = None
    free: tuple[Var, ...] = ()  # its free variables
    lowered: bool = False  # in this pass
    final: bool = False
    seen: State | None = None  # the path state where it was lowered


@dataclass(slots=True)
class Routines:
    """The routines of one lowering attempt."""

    forms: list[Form] = field(default_factory=list)
    settling: bool = False
    changed: bool = False


def form_of(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> Form:
    fixed = cx.recursion.fixed.get(identity, set())
    key = tuple((name, _kind(cx, value, (name,), fixed)) for name, value in values.items())
    forms = [form for form in cx.routines.forms if form.identity is identity]
    for form in forms:
        if form.key == key and _still_holds(cx, form):
            return form
    if len(forms) >= MOST:
        raise cx.refusal(
            CompileLimit,
            f"'{frame.name}' calls itself with more and more kinds of arguments.",
            "Pass numbers and arrays of the same types and the same options in each call.",
        )
    form = Form(identity, key, Routine(frame.name))
    cx.routines.forms.append(form)
    return form


def _kind(cx: Context, value: Any, path: Path, fixed: set[Path]) -> Any:
    """The signature of one argument of a routine."""
    if isinstance(value, Struct):
        children = zip(value.keys, value.children, strict=True)
        return (
            value.kind,
            value.keys,
            value.cls,
            tuple(_kind(cx, child, (*path, key), fixed) for key, child in children),
        )
    if not is_parameter(cx, value, path, fixed):
        known = known_value(value)
        if path in fixed and known is not UNKNOWN:
            return StaticValue(known)
        if isinstance(value, Captured):
            return "captured", value.path
        return value if isinstance(value, StaticValue) else Itself(value)
    expr = expr_of(cx, value)
    return canonical_type(expr.type), several_kinds(cx, expr)


def is_parameter(cx: Context, value: Any, path: Path, fixed: set[Path]) -> bool:
    """Whether an argument is passed at run time."""
    if path in fixed:
        if known_value(value) is UNKNOWN:
            refusal = cx.refusal(CompileLimit, "this must be known when compiling.", "Use an argument or a constant.")
            raise NeedsConstant(expr_of(cx, value), refusal)
        return False
    if isinstance(value, Leaf):
        if isinstance(value.type, (ListOf, TupleOf)):
            raise cx.refusal(
                NotDifferentiable, "a list that grows is passed to a recursive function.", "Pass an array."
            )
        return isinstance(value.type, (Array, Scalar))
    if not isinstance(value, StaticValue):
        return False
    known = value.value
    return isinstance(known, np.generic) or (is_number(known) and not isinstance(known, bool))


def canonical_type(type_: Type) -> Type:
    """The type of a parameter or a result, without unit axes and layout, in which calls differ."""
    return Array(type_.dtype, type_.rank) if isinstance(type_, Array) else type_


def _still_holds(cx: Context, form: Form) -> bool:
    """Whether the variables of enclosing functions are unchanged since the routine was lowered."""
    if form.seen is None or not form.final:
        return True
    captured = {key: value for key, value in form.seen.vars.items() if key[0] and key[1] in key[0].live.captured}
    return all(cx.state.vars.get(key) is value for key, value in captured.items()) and (
        not captured
        or all(cx.state.cells.get(key) is cell for key, cell in form.seen.cells.items() if key in cx.state.cells)
    )
