"""Phi nodes: one value for several paths, after an If and for loop-carried variables.

A *template* is the value that represents all paths.  Where they differ in a scalar or array it has a new Var, a phi;
`Merge.fill` then gives the value that each path assigns to it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from tapegen.errors import CompileLimit
from tapegen.frontend.source.parse import MISSING
from tapegen.frontend.values.captures import capture, class_member, expand
from tapegen.frontend.values.constant_shapes import known_shape
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import expr_of, is_int, type_of, zero_of
from tapegen.frontend.values.narrowing import distinct, holders_of, loses_writes, unlike, was_there
from tapegen.frontend.values.pytree import UNKNOWN, Itself, Leaf, StaticValue, Struct, same_static
from tapegen.frontend.values.state import (
    ABSENT,
    FLAGS,
    Bound,
    Box,
    Captured,
    Cell,
    Choice,
    Closure,
    Frame,
    Key,
    Maybe,
    Poison,
    Ref,
    RunList,
    State,
    is_number,
)
from tapegen.frontend.values.type_join import Clash, converted, is_short, merged_type
from tapegen.frontend.values.type_sets import narrower_dtype, note_kinds
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import BOOL, Array, ListOf, Scalar, Type


class _Anything:
    """Any value: the variable is dead on this path."""

    def __repr__(self) -> str:
        return "ANYTHING"


ANYTHING: Final = _Anything()
MOST_MERGES = 10_000
"""Numbers and arrays that are merged where paths meet; more come of containers that hold themselves."""
Side = tuple[Any, State]
Put = Callable[[Var, Expr], None]


def look_up(state: State, key: Key) -> Any:
    """The value of a variable on a path; flags are False where they are not set."""
    value = state.vars.get(key, ABSENT)
    if value is ABSENT and key in FLAGS:
        return StaticValue(False)
    return value


def frames_of(value: Any, state: State) -> Iterator[Frame]:
    """The frames whose variables a value may read later: of the inner functions in it."""
    match value:
        case StaticValue(Closure(_, frame)):
            outer: Frame | None = frame
            while outer is not None:
                yield outer
                outer = outer.parent
        case Maybe(inner):
            yield from frames_of(inner, state)
        case Bound(func, args, kwargs):
            for part in (func, *args, *kwargs.values()):
                yield from frames_of(part, state)
        case Ref(cell) if cell in state.cells:
            yield from frames_of(state.cells[cell].content, state)
        case Struct():
            for child in value.children:
                yield from frames_of(child, state)


@dataclass(slots=True)
class Merge:
    """Builder of phis: templates that are made together, in the state `state`."""

    cx: Context
    state: State
    base: State  # before the paths diverge
    fresh: bool = False  # every scalar becomes a phi, as for a loop whose body is not lowered yet
    since: int | None = None  # of branches, when they began: older values are accessible in all
    test: Expr | None = None  # of branches: the condition
    assumed: Container[int] = ()  # containers with which a loop was lowered, in place of those merged here
    new: dict[Var, None] = field(default_factory=dict)
    adopted: dict[int, Ref] = field(default_factory=dict)  # containers that one branch made, as seen after the join
    holders: dict[int, tuple[State, dict[int, set[str]]]] = field(default_factory=dict)  # by the identity of a state

    # ---- templates ---------------------------------------------------------------------------------------------------

    def template(self, base: str, sides: Sequence[Side]) -> Any:
        """The value that represents the values of all paths."""
        rest = [side for side in sides if side[0] is not ANYTHING]
        if not rest:
            return ANYTHING
        if len(rest) < len(sides):
            return self.partial(base, rest)
        values = [value for value, _ in sides]
        if any(value is ABSENT or isinstance(value, Maybe) for value in values):
            return self._maybe(base, sides)
        for value in values:
            if isinstance(value, Poison):
                return value
        try:
            if any(isinstance(value, Choice) for value in values):
                raise Clash(
                    f"{_called(base)} is not the same kind of value on all paths.",
                    "Give it the same type on all paths.",
                )
            return self._template(base, sides)
        except Clash as clash:
            return self._choice(base, sides) or Poison(f"{clash}", clash.advice)

    def _maybe(self, base: str, sides: Sequence[Side]) -> Any:
        """A variable that is not bound on all paths."""
        inner = [(value.value if isinstance(value, Maybe) else value, s) for value, s in sides if value is not ABSENT]
        if not inner:
            return ABSENT
        bounds = {value.bound if isinstance(value, Maybe) else Const(value is not ABSENT) for value, _ in sides}
        known = len(bounds) == 1 and not self.fresh
        value = self.template(base, inner) if len(inner) == len(sides) else self.partial(base, inner)
        return Maybe(value, bounds.pop() if known else self._flag(base))

    def partial(self, base: str, sides: Sequence[Side]) -> Any:
        """The template for some of the paths: computed values need a phi that all paths assign."""
        if all(isinstance(value, StaticValue) and same_static(value.value, sides[0][0].value) for value, _ in sides):
            return sides[0][0] if not self.fresh else self.template(base, sides)
        if was_there(self.cx, sides, self.since):
            return sides[0][0]
        outer, self.fresh = self.fresh, True
        try:
            made = self.template(base, sides)
        finally:
            self.fresh = outer
        first = sides[0][0]
        if not outer and len(sides) == 1 and isinstance(first, Leaf) and isinstance(made, Leaf):
            return dataclasses.replace(made, known=first.known)  # on the other paths nothing reads it
        return made

    def _choice(self, base: str, sides: Sequence[Side]) -> Choice | None:
        """A union, if there are exactly two kinds."""
        groups: dict[Any, list[Side]] = {}
        for value, state in sides:
            parts = (value.first, value.second) if isinstance(value, Choice) else (value,)
            for part in parts:
                groups.setdefault(self.kind(part, state), []).append((part, state))
        if len(groups) != 2 or not unlike(*groups):
            return None
        ordered = sorted(groups.items(), key=lambda item: not isinstance(item[0], StaticValue))
        (kind, first), (other, second) = ordered
        alternatives = distinct(self.partial(base, first)), distinct(self.partial(base, second))
        if any(isinstance(part, Poison) for part in alternatives):
            return None
        word = "is_none" if kind == StaticValue(None) else "first"
        return Choice(self._var(f"{base.strip()}_{word}", BOOL), *alternatives, (kind, other))

    def kind(self, value: Any, state: State) -> Any:
        type_ = type_of(value)
        if isinstance(type_, Array):
            return (Array, type_.rank, type_.dtype)
        if type_ is not None:
            return Scalar
        if isinstance(value, StaticValue):
            return value
        content = self._content(value, state)
        if isinstance(content, Struct):
            return (content.kind, content.cls, content.keys)
        if isinstance(content, RunList):
            return ("list", list)
        return Itself(value)

    def _template(self, base: str, sides: Sequence[Side]) -> Any:
        first = sides[0][0]
        values = [value for value, _ in sides]
        if all(type_of(value) is not None for value in values):
            return self._leaf(base, sides)
        if all(isinstance(value, StaticValue) for value in values):
            if all(same_static(value.value, first.value) for value in values):
                return first
        elif all(value is first for value in values) and not isinstance(first, (Struct, Ref)):
            owners = first.args if isinstance(first, Bound) else ()
            if any(isinstance(owner, Ref) and owner.cell not in self.base.cells for owner in owners):
                raise Clash(
                    f"{_called(base)} is a method of an object that is made on one path only.",
                    "Keep the object itself, and call its method where you need it.",
                )
            return first
        if (
            all(isinstance(value, Ref) and value.cell == first.cell for value in values)
            and first.cell in self.base.cells
        ):
            return first
        contents = [self._content(value, state) for value, state in sides]
        if len(sides) == 1 and self.since is not None and isinstance(first, Ref) and isinstance(contents[0], Struct):
            return self.adopt(base, first, contents[0], sides[0][1])
        if any(isinstance(content, RunList) for content in contents) or _lengths_differ(contents):
            made: Any = self._run_list(base, contents, sides)
        elif all(isinstance(content, Struct) for content in contents):
            made = self._struct(base, [(c, s) for c, (_, s) in zip(contents, sides, strict=True)])
        else:
            raise Clash(
                f"{_called(base)} is not the same kind of value on all paths.", "Give it the same type on all paths."
            )
        if isinstance(made, Ref) and any(
            isinstance(value, Ref)
            and (value.cell in self.cx.containers.named_lists or self._has_other_name(value, base, state))
            for value, state in sides
        ):
            self.cx.containers.named_lists.add(made.cell)
        for value, content in zip(values, contents, strict=True):
            if isinstance(value, Ref) and isinstance(content, Struct):
                self.cx.containers.copied[value.cell] = (
                    f"{_called(base)} may be this {content.kind}, and this changes it."
                )
        return made

    def adopt(self, base: str, ref: Ref, content: Struct, state: State) -> Ref:
        """Adopt a container that only one branch has: it keeps its identity, with contents accessible on all paths."""
        if ref.cell not in self.adopted:
            self.adopted[ref.cell] = Ref(ref.cell)
            children = tuple(
                self.partial(f"{base}_{key}", [(child, state)])
                for key, child in zip(content.keys, content.children, strict=True)
            )
            made = dataclasses.replace(content, children=children, whole=None)
            self.state.cells[ref.cell] = Cell(made, state.cells[ref.cell].frozen)
        return self.adopted[ref.cell]

    def _leaf(self, base: str, sides: Sequence[Side]) -> Any:
        values = [value for value, _ in sides]
        exprs = [expr_of(self.cx, value) for value in values]
        if not self.fresh and all(expr == exprs[0] for expr in exprs):
            return values[0]
        type_ = merged_type(base, values, self.cx.symbols.short)
        if isinstance(type_, Scalar) and loses_writes(self.cx, base, sides):
            raise Clash(
                f"{_called(base)} may be an array without axes, which another name holds too, or a number.",
                f"Convert it before: float({base}).",
            )
        var = self._var(base, type_)
        if any(expr in self.cx.symbols.flat for expr in exprs):
            if not all(expr in self.cx.symbols.flat for expr in exprs):
                raise Clash(
                    f"{_called(base)} is an array on one path and what '.flat' gives on another.", "Use np.ravel."
                )
            self.cx.symbols.flat.add(var)
        if all(is_short(value, self.cx.symbols.short) for value in values):
            self.cx.symbols.short.add(var)
        note_kinds(self.cx, var, exprs)
        self._note_narrower(var, exprs)
        if self.test is not None:
            self._note_sources(var, exprs)
        elif self.fresh and isinstance(type_, Array):
            self.cx.symbols.entries[var] = exprs[0]
        return Leaf(var)

    def _note_narrower(self, var: Var, exprs: Sequence[Expr]) -> None:
        for expr in exprs if self.cx.symbols.narrower and isinstance(var.type, Array) else ():
            dtype = narrower_dtype(self.cx, expr) if isinstance(expr, Var) else None
            if dtype is not None:
                self.cx.symbols.narrower[var] = dtype

    def _note_sources(self, var: Var, exprs: list[Expr]) -> None:
        """Record the sources of a joined integer, and the shape that an array has on all paths."""
        assert self.test is not None
        if isinstance(var.type, Array):
            self.cx.symbols.depends[var] = tuple(exprs)
            shapes = [known_shape(self.cx, expr) for expr in exprs]
            if shapes[0] is not None and all(shape == shapes[0] for shape in shapes):
                self.cx.symbols.shapes[var] = shapes[0]
        elif is_int(Leaf(var)):
            self.cx.symbols.depends[var] = (self.test, *exprs)

    def _var(self, base: str, type_: Type) -> Var:
        if len(self.new) >= MOST_MERGES:
            raise self.cx.refusal(
                CompileLimit,
                f"more than {MOST_MERGES} numbers and arrays in containers are merged here.",
                "Stack them into arrays. A container that holds itself once more in each iteration cannot be compiled.",
            )
        var = self.cx.new_var(base, type_)
        self.new[var] = None
        if isinstance(type_, Array):
            self.cx.symbols.roots[var] = None
        return var

    def _flag(self, base: str) -> Var:
        return self._var(f"{base.strip()}_bound", BOOL)

    def _has_other_name(self, ref: Ref, base: str, state: State) -> bool:
        """Whether a variable other than `base` holds a container."""
        if id(state) not in self.holders:
            self.holders[id(state)] = (state, holders_of(state))
        return not self.holders[id(state)][1].get(ref.cell, set()) <= {base}

    def _content(self, value: Any, state: State) -> Any:
        if isinstance(value, Ref):
            return state.cells[value.cell].content
        return expand(self.cx, value) if isinstance(value, Captured) else value

    def _run_list(self, base: str, contents: list[Any], sides: Sequence[Side]) -> Ref:
        """A variable for one of several growing lists; a list of known length counts as a new one."""
        items: list[Side] = []
        frozen = ""
        for content, (value, state) in zip(contents, sides, strict=True):
            if isinstance(value, Ref) and isinstance(content, Struct) and self._has_other_name(value, base, state):
                frozen = f"{_called(base)} may be a list that has another name, and this changes it."
            elif isinstance(value, Ref) and value.cell not in self.assumed:
                may_be_other = isinstance(content, RunList) or value.cell in self.cx.containers.named_lists
                frozen = frozen or (state.cells[value.cell].frozen if may_be_other else "")
            if isinstance(content, RunList):
                items.append((content.item, state))
            elif isinstance(content, Struct) and content.kind == "list":
                items.extend((child, state) for child in content.children)
            else:
                raise Clash(f"{_called(base)} is not a list on all paths.", "Give it the same type on all paths.")
        template = Merge(self.cx, self.state, self.base, fresh=True).template("item", items)
        leaves = number_leaves(template)
        if not leaves:  # a length needs a column
            raise Clash(f"the items of {_called(base)} are not numbers or arrays of one kind.", "Use a tuple.")
        for content in contents:
            if isinstance(content, RunList) and [c.type for c in content.columns] != [ListOf(t) for t in leaves]:
                raise Clash(f"the items of {_called(base)} differ in type.", "Put items of one type into it.")
        columns = tuple(self._var(base, ListOf(type_)) for type_ in leaves)
        ref = self.cx.new_cell(RunList(template, columns), frozen)
        self.state.cells[ref.cell] = self.cx.containers.merged_cells[ref.cell] = self.cx.state.cells[ref.cell]
        return ref

    def _fill_list(self, wanted: RunList, given: Any, put: Put) -> None:
        for k, column in enumerate(wanted.columns):
            if column not in self.new:
                continue
            if isinstance(given, RunList):
                put(column, given.columns[k])
            else:
                assert isinstance(column.type, ListOf)
                rows = () if given is ANYTHING else given.children
                exprs = tuple(converted(number_exprs(self.cx, row)[k], column.type.item) for row in rows)
                put(column, Call(intrinsics.new_list, exprs, (), column.type))

    def _struct(self, base: str, sides: list[Side]) -> Any:
        struct = sides[0][0]
        for other, _ in sides:
            if (other.kind, other.cls) != (struct.kind, struct.cls):
                raise Clash(
                    f"{_called(base)} is a {struct.kind} on one path and a {other.kind} on another.", "Use one of them."
                )
            if other.keys != struct.keys:
                advice = (
                    "Give it the same length on all paths."
                    if struct.kind in ("list", "tuple")
                    else "Use the same keys."
                )
                raise Clash(
                    f"{_called(base)} has different {'lengths' if struct.kind in ('list', 'tuple') else 'keys'}.",
                    advice,
                )
        children = tuple(
            self.template(f"{base}_{key}", [(side.children[k], state) for side, state in sides])
            for k, key in enumerate(struct.keys)
        )
        made = dataclasses.replace(struct, children=children, whole=None)
        if struct.kind == "tuple":
            return made
        frozen = f"{_called(base)} is one of several {struct.kind}s here, and this changes it."
        return self._new_cell(made, frozen)

    def _new_cell(self, content: Struct, frozen: str) -> Ref:
        ref = self.cx.new_cell(content, frozen)
        self.state.cells[ref.cell] = self.cx.containers.merged_cells[ref.cell] = self.cx.state.cells[ref.cell]
        return ref

    def contents(self, sides: Sequence[tuple[Struct, State]]) -> Any:
        """The template for the contents of one container on several paths."""
        sides = _completed(self.cx, sides)
        first = sides[0][0]
        if any(content.keys != first.keys or content.kind == "poison" for content, _ in sides):
            return Struct("poison", (), (), first.cls)
        children = []
        for k, key in enumerate(first.keys):
            pairs = [(content.children[k], state) for content, state in sides]
            same = not self.fresh and all(value is pairs[0][0] for value, _ in pairs)
            name = key if first.cls is Box else f"{first.cls.__name__.lower()}_{key}"
            children.append(pairs[0][0] if same else self.template(name, pairs))
        return Struct(first.kind, first.keys, tuple(children), first.cls)

    # ---- what a path assigns -----------------------------------------------------------------------------------------

    def fill(self, template: Any, value: Any, state: State, put: Put) -> None:
        """Call `put(phi, expression)` for every phi of a template."""
        if isinstance(template, Maybe):
            if isinstance(template.bound, Var) and template.bound in self.new:
                bound = value.bound if isinstance(value, Maybe) else Const(value is not ABSENT)
                put(template.bound, bound)
            inner = value.value if isinstance(value, Maybe) else value
            self.fill(template.value, ANYTHING if inner is ABSENT else inner, state, put)
        elif isinstance(template, Choice):
            self._fill_choice(template, value, state, put)
        elif isinstance(template, Leaf):
            if isinstance(template.expr, Var) and template.expr in self.new:
                put(template.expr, self._converted(value, template.expr.type))
        elif isinstance(template, (Struct, Ref)):
            wanted = self._content(template, self.state)
            given = ANYTHING if value is ANYTHING else self._content(value, state)
            own = template.cell if isinstance(template, Ref) else None
            if isinstance(value, Ref) and value.cell == own and own not in self.adopted:
                return  # the same container: its contents are merged separately
            if isinstance(wanted, RunList):
                self._fill_list(wanted, given, put)
                return
            if isinstance(given, Struct):
                given = _with_names(self.cx, given, wanted.keys)
            for k, child in enumerate(wanted.children):
                self.fill(child, ANYTHING if given is ANYTHING else given.children[k], state, put)

    def _fill_choice(self, template: Choice, value: Any, state: State, put: Put) -> None:
        assert isinstance(template.test, Var)
        if template.test not in self.new:  # each branch of a test of its kind has one kind
            kind = None if value is ANYTHING else self.kind(value, state)
            self.fill(template.first, value if kind == template.kinds[0] else ANYTHING, state, put)
            self.fill(template.second, value if kind == template.kinds[1] else ANYTHING, state, put)
            return
        first, second, test = value, ANYTHING, cast(Expr, Const(True))
        if isinstance(value, Choice):
            first, second, test = value.first, value.second, value.test
            if self.kind(first, state) != template.kinds[0]:  # `value.kinds` is outdated for a list that grows since
                first, second, test = second, first, Call(operator.not_, (test,), (), BOOL)
        elif value is not ANYTHING and self.kind(value, state) != template.kinds[0]:
            first, second, test = ANYTHING, value, Const(False)
        put(template.test, test)
        self.fill(template.first, first, state, put)
        self.fill(template.second, second, state, put)

    def _converted(self, value: Any, type_: Type) -> Expr:
        if value is ANYTHING or isinstance(value, Poison):
            return zero_of(type_)
        other = isinstance(value, Leaf) and getattr(value.type, "dtype", "") != getattr(type_, "dtype", "")
        known = value.known if other else UNKNOWN
        expr = Const(known) if is_number(known) else expr_of(self.cx, value)
        return converted(expr, type_)


def _lengths_differ(contents: list[Any]) -> bool:
    lists = all(isinstance(content, Struct) and content.kind == "list" for content in contents)
    return lists and any(content.keys != contents[0].keys for content in contents)


def number_leaves(template: Any) -> list[Type] | None:
    """Types of the scalars and arrays in an item of a list; None if other parts of it differ between items."""
    if isinstance(template, Leaf):
        return [template.type]
    if isinstance(template, StaticValue):
        return []
    parts = [number_leaves(child) for child in template.children] if isinstance(template, Struct) else [None]
    return None if None in parts else [type_ for part in parts for type_ in part or ()]


def number_exprs(cx: Context, value: Any) -> list[Expr]:
    """Expressions of the scalars and arrays in an item of a list."""
    if type_of(value) is not None:
        return [expr_of(cx, value)]
    if isinstance(value, Struct):
        return [expr for child in value.children for expr in number_exprs(cx, child)]
    return []


# ---- comparing templates ---------------------------------------------------------------------------------------------


def _called(base: str) -> str:
    """A phi in a message: one without a user name is "a value"."""
    return "a value" if base.startswith(TEMPORARY) else f"'{base}'"


def _completed(cx: Context, sides: Sequence[tuple[Struct, State]]) -> list[tuple[Struct, State]]:
    """Objects completed to the union of their attributes, where the class has defaults for the missing ones."""
    names = tuple(dict.fromkeys(key for content, _ in sides for key in content.keys))
    return [(_with_names(cx, content, names), state) for content, state in sides]


def _with_names(cx: Context, content: Struct, names: tuple[Any, ...]) -> Struct:
    """An object with attributes of these names, if it or its class has them all; else unchanged."""
    if content.kind != "object" or content.keys == names or not set(content.keys) <= set(names):
        return content
    children = dict(zip(content.keys, content.children, strict=True))
    for name in names:
        if name not in children:
            found = class_member(cx, content.cls, name)
            if found is MISSING or callable(found) or hasattr(type(found), "__get__"):
                return content
            children[name] = _of_class(cx, content.cls, name, found)
    return dataclasses.replace(content, keys=names, children=tuple(children[name] for name in names))


def _of_class(cx: Context, cls: type, name: str, found: Any) -> Any:
    return capture(cx, found, lambda: getattr(cls, name), name, (id(cls), name))
