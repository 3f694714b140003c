"""Writes of a program to objects of the caller, as results of the program."""

from __future__ import annotations

import dataclasses
from typing import Any

from tapegen.errors import NotDifferentiable, Span
from tapegen.frontend.lowering.finalize import resolved
from tapegen.frontend.mutation.caller_objects import Owned, part_name
from tapegen.frontend.mutation.commit import Either, Grown, Mutation, NewContainer, Theirs
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import check_keys, describe, poison_check, type_of
from tapegen.frontend.values.pytree import Leaf, Slot, StaticValue, Struct
from tapegen.frontend.values.state import ABSENT, Captured, Choice, Closure, Maybe, Ref, RunList
from tapegen.ir.nodes import Const, Expr, Var
from tapegen.ir.types import STATIC, RandomGenerator


def mutations_of(cx: Context, exprs: list[Expr]) -> tuple[Mutation, ...]:
    """The mutations of a program; the stored values are added to the results in `exprs`."""
    collector = _Collector(cx, exprs)
    found: list[Mutation] = []
    for number, owned in cx.caller.owned.items():
        content = cx.state.cells[number].content
        if content is not owned.initial:
            made = collector.mutation(number, owned, content)
            if made is not None:
                found.append(made)
    return tuple(found)


@dataclasses.dataclass(slots=True)
class _Collector:
    cx: Context
    exprs: list[Expr]
    slots: dict[Expr, Slot] = dataclasses.field(default_factory=dict)

    def mutation(self, number: int, owned: Owned, content: Struct | RunList) -> Mutation | None:
        span = self.cx.frame.parsed.span(self.cx.frame.node)
        if owned.variable is not None:
            assert isinstance(content, Struct)
            (value,) = content.children
            if self._same(value, owned.initial.children[0]):
                return None
            held = ((owned.name, self.template(owned.name, value)),)
            return Mutation(owned.find, "variable", held, (), (owned.name,), owned.place, owned.variable.setter, span)
        if isinstance(content, RunList) or content.kind == "list":
            kind = "tail" if owned.is_tail else "list"
            if isinstance(content, Struct) and content.keys == owned.initial.keys and not owned.is_tail:
                return self._items(owned, content, span)
            stored = self._content(owned.name, number, content)
            return Mutation(owned.find, kind, ((None, stored),), (), (owned.name,), owned.place, None, span)
        check_keys(self.cx, number, content)
        return self._items(owned, content, span)

    def _items(self, owned: Owned, content: Struct, span: Span) -> Mutation | None:
        initial = dict(zip(owned.initial.keys, owned.initial.children, strict=True))
        items = tuple(
            (key, self.template(part_name(content, owned.name, key), value))
            for key, value in zip(content.keys, content.children, strict=True)
            if key not in initial or not self._same(value, initial[key])
        )
        removed = tuple(key for key in initial if key not in content.keys)
        if not items and not removed:
            return None
        names = tuple(part_name(content, owned.name, key) for key in (*(key for key, _ in items), *removed))
        kind = "items" if content.kind == "list" else content.kind
        return Mutation(owned.find, kind, items, removed, names, owned.place, None, span)

    def _same(self, value: Any, before: Any) -> bool:
        """Whether a location has its value from entry on all paths."""
        if value is before:
            return True
        if isinstance(value, Leaf) and isinstance(before, Leaf):
            return bool(resolved(self.cx, value.expr) == resolved(self.cx, before.expr))
        if isinstance(value, StaticValue) and isinstance(before, StaticValue):
            return value == before
        if isinstance(value, Struct) and isinstance(before, Struct) and value.kind == "tuple":
            alike = (value.keys, value.cls) == (before.keys, before.cls)
            return alike and all(map(self._same, value.children, before.children))
        return isinstance(value, Ref) and isinstance(before, Ref) and value.cell == before.cell

    def template(self, name: str, value: Any) -> Any:
        """A stored value, with Slots for what the program computes."""
        cx = self.cx
        match poison_check(cx, value):
            case Leaf(expr):
                if expr.type == STATIC or isinstance(expr.type, RandomGenerator):
                    raise self._refusal(name, "text made of numbers of the program" if expr.type == STATIC else "it")
                return self._slot(expr)
            case StaticValue(Closure()):
                raise self._refusal(name, "a function that is made inside of the function")
            case StaticValue():
                return value
            case Ref(cell):
                owned = cx.caller.owned.get(cell)
                if owned is not None:
                    return Theirs(owned.find)
                return self._content(name, cell, cx.state.cells[cell].content)
            case Captured():
                getter = value.getter
                return Theirs(lambda arguments: getter())
            case Struct():
                children = tuple(self.template(name, child) for child in value.children)
                return dataclasses.replace(value, children=children, whole=None)
            case Choice():
                test = self._slot(value.test)
                return Either(test, self.template(name, value.first), self.template(name, value.second))
            case Maybe() | _ if value is ABSENT or isinstance(value, Maybe):
                raise cx.refusal(
                    NotDifferentiable,
                    f"'{name}' is set on some paths only, and does not exist before.",
                    f"Set {name} before the first call, to None or 0.0.",
                )
        raise self._refusal(name, describe(cx, value))

    def _refusal(self, name: str, what: str) -> NotDifferentiable:
        refusal = self.cx.refusal(
            NotDifferentiable,
            f"{what} is stored into '{name}', which belongs to the caller.",
            "Store numbers, arrays and containers of them.",
        )
        assert isinstance(refusal, NotDifferentiable)
        return refusal

    def _content(self, name: str, number: int, content: Struct | RunList) -> Any:
        if isinstance(content, RunList):
            columns = tuple(self._slot(column) for column in content.columns)
            return Grown(number, self._item(content.item), columns)
        check_keys(self.cx, number, content)
        inside = getattr(content.cls, "__tapegen_inside__", None)
        if inside is not None:
            raise self._refusal(name, inside)
        children = tuple(self.template(name, child) for child in content.children)
        return NewContainer(number, dataclasses.replace(content, children=children, whole=None))

    def _item(self, item: Any) -> Any:
        if isinstance(item, Struct):
            return dataclasses.replace(item, children=tuple(map(self._item, item.children)), whole=None)
        return Slot(0) if type_of(item) is not None else item

    def _slot(self, expr: Expr) -> Slot:
        expr = self.cx.symbols.resolve(expr)
        made = expr if isinstance(expr, (Var, Const)) else self.cx.atom(expr, "stored")
        if made not in self.slots:
            self.exprs.append(made)
            self.slots[made] = Slot(len(self.exprs) - 1)
        return self.slots[made]


__all__ = ["mutations_of"]
