"""Names of intermediate results: after the array that they are stored into, else after what they are made of.

`u[0] = k * x[i]` has the intermediate results `x_i` and `u_new`; in `np.exp(-(x - y)) * s` they are `x_minus_y` and
`exp`.  A result that needs a longer name than two operands is called after its operation, and after the variable that
it is made of if it is made of one: `u_total`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, Load, Slice, Store, Var
from tapegen.ir.types import Array, Scalar

_LONGEST = 14

# how two operands are joined, and what a longer expression is called
_BINARY: Mapping[Any, tuple[str, str]] = {
    operator.add: ("_plus_", "total"),
    operator.sub: ("_minus_", "difference"),
    operator.mul: ("_", "product"),
    operator.truediv: ("_over_", "ratio"),
    operator.floordiv: ("_over_", "quotient"),
    operator.mod: ("_mod_", "rest"),
    operator.pow: ("_to_", "power"),
    operator.matmul: ("_at_", "product"),
    operator.gt: ("_gt_", "test"),
    operator.ge: ("_ge_", "test"),
    operator.lt: ("_lt_", "test"),
    operator.le: ("_le_", "test"),
    operator.eq: ("_eq_", "test"),
    operator.ne: ("_ne_", "test"),
}
_SAME: Mapping[Any, Any] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.matmul: operator.matmul,
    np.power: operator.pow,
}
_POWERS = {2: "squared", 3: "cubed", 0.5: "root"}
_MODULES = ("numpy", "scipy", "math", "cmath", "builtins")


class TemporaryNames:
    """Names for the intermediate results of a program.

    Parameters
    ----------
    body : Block
        The program.
    titles : mapping
        The names that variables have from the user.
    """

    def __init__(self, body: Block, titles: Mapping[Var, str]) -> None:
        self._titles = titles
        self._made: dict[Var, Expr] = {}
        self._stored: dict[Var, Store] = {}
        reads: Counter[Var] = Counter()
        assigned: Counter[Var] = Counter()
        for stmt in traversal.statements(body):
            for header in stmt.headers:
                reads.update(traversal.occurrences(header))
            assigned.update(stmt.targets)
            if isinstance(stmt, Assign) and len(stmt.targets) == 1:
                self._made[stmt.targets[0]] = stmt.value
            elif isinstance(stmt, Store) and isinstance(stmt.value, Var):
                self._stored[stmt.value] = stmt
        self._made = {var: value for var, value in self._made.items() if assigned[var] == 1}
        self._stored = {var: stmt for var, stmt in self._stored.items() if reads[var] == 1}
        self._known: dict[Var, str | None] = {}

    def of(self, var: Var) -> str | None:
        """The name of an intermediate result; None where nothing better than a number is known."""
        store = self._stored.get(var)
        if store is not None and (array := self._own(store.array)) is not None:
            return f"{array}_add" if store.accumulate else f"{array}_new"
        return self._described(var)

    def _own(self, var: Var) -> str | None:
        """The user's name."""
        base = self._titles.get(var, var.name.partition("#")[0])
        return None if TEMPORARY in base else base

    def _described(self, var: Var) -> str | None:
        """The name by what a variable is made of."""
        if var not in self._known:
            value = self._made.get(var)
            self._known[var] = None if value is None else self._name(value)
        return self._known[var]

    def _name(self, value: Expr) -> str | None:
        match value:
            case Var():
                return self._own(value) or self._described(value)
            case Load(array, index):
                base = self._own(array) or self._described(array)
                return None if base is None else f"{base}_{self._at(index)}"
            case Call(operator.neg | np.negative, (part,)):
                name = self._operand(part)
                return self._after(value, "negative") if name is None else f"minus_{name}"
            case Call(func, (first, second), ()) if (found := _binary(func)) in _BINARY:
                return self._of_two(found, first, second) or self._after(value, _BINARY[found][1])
            case Call(func, (first, *_)) if (name := _library_name(func)) is not None:
                operand = self._operand(first)
                if operand is not None and len(value.args) == 1 and len(operand) + len(name) < _LONGEST:
                    return f"{name}_{operand}"
                return self._after(value, name, behind=True)
        return None

    def _of_two(self, func: Any, first: Expr, second: Expr) -> str | None:
        """A name of both operands, if it is short."""
        one, other = self._operand(first), self._operand(second)
        name = None
        if one is not None and isinstance(second, Const):
            if func is operator.pow:
                power = second.value if isinstance(second.value, (int, float)) else None
                name = f"{one}_{_POWERS.get(power, 'power')}"  # type: ignore[arg-type]
            elif func in (operator.add, operator.sub):
                name = f"{one}_shifted"
            elif func in (operator.mul, operator.truediv):
                name = f"{one}_scaled"
        elif other is not None and isinstance(first, Const):
            if func in (operator.add, operator.sub):
                name = f"{other}_shifted"
            elif func is operator.mul:
                name = f"{other}_scaled"
            elif func is operator.truediv:
                name = f"{other}_inverse"
        elif one is not None and other is not None:
            if one == other and func is operator.mul:
                name = f"{one}_squared"
            else:
                name = f"{one}{_BINARY[func][0]}{other}"
        return name if name is None or len(name) <= _LONGEST else None

    def _operand(self, part: Expr) -> str | None:
        """The name of an operand that has one from the user, or of an element or a part of such an array."""
        if isinstance(part, Var):
            own = self._own(part)
            if own is not None:
                return own
            made = self._made.get(part)
            return self._operand(made) if isinstance(made, (Var, Load)) else None
        if isinstance(part, Load):
            base = self._own(part.array)
            return None if base is None else f"{base}_{self._at(part.index)}"
        return None

    def _after(self, value: Expr, word: str, *, behind: bool = False) -> str:
        """The operation, with the variable that everything is made of if there is one alone."""
        roots = set(self._roots(value, set()))
        if len(roots) != 1:
            return word
        (root,) = roots
        name = f"{word}_{root}" if behind else f"{root}_{word}"
        return name if len(name) <= _LONGEST else word

    def _roots(self, value: Expr, seen: set[Var]) -> Iterator[str]:
        """The user's names that a value is made of; indices and integers are left out."""
        for var in traversal.free_vars(value):
            own = self._own(var)
            if own is not None:
                if not (isinstance(var.type, Scalar) and var.type.dtype == "int64"):
                    yield own
            elif var in self._made and var not in seen:
                seen.add(var)
                yield from self._roots(self._made[var], seen)

    def _at(self, index: tuple[Any, ...]) -> str:
        """What is read of an array."""
        if any(isinstance(item, Slice) or isinstance(item.type, Array) for item in index):
            return "part"
        if all(isinstance(item, Var) and len(self._own(item) or "long") == 1 for item in index):
            return "".join(self._own(item) or "" for item in index)
        match index:
            case (Const(int() as k),) if k >= 0:
                return f"at_{k}"
            case (Call(operator.add, (Var(), Const(1))),):
                return "next"
            case (Call(operator.sub, (Var(), Const(1))),):
                return "previous"
        return "at"


def _binary(func: Any) -> Any:
    try:
        return _SAME.get(func, func)
    except TypeError:  # a callable that has no hash
        return None


def _library_name(func: Any) -> str | None:
    """The name of a function of a library."""
    module = getattr(func, "__module__", None) or ("numpy" if isinstance(func, np.ufunc) else "")
    if module == intrinsics.__name__ or module.partition(".")[0] not in _MODULES:
        return None
    name = getattr(func, "__name__", "")
    return name if name.isidentifier() and not name.startswith("_") else None
