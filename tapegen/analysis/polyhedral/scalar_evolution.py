"""Scalar evolution: integer expressions as affine forms of loop counters and values constant during a call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tapegen.analysis.memory_access import is_one_of
from tapegen.analysis.polyhedral.constraints import (
    And,
    Atom,
    Formula,
    Linear,
    Or,
    Symbol,
    at_least,
    equal,
    is_trivially_nonnegative,
    loops_of,
)
from tapegen.analysis.polyhedral.schedule import Definition, Site, Sites
from tapegen.ir import intrinsics
from tapegen.ir.affine import Affine
from tapegen.ir.nodes import Assign, Block, Break, Call, Const, Continue, Expr, For, If, Raise, Stmt, Var, While
from tapegen.ir.types import Array, Scalar

Extent = Callable[[Var, int, Site], Linear]

_EXACT = frozenset({"int64"})  # narrower integers wrap around
_COMPARISONS = frozenset({operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne})
_MINIMA = frozenset({min, np.minimum})
_MAXIMA = frozenset({max, np.maximum})


@dataclass(frozen=True, slots=True)
class InductionVariable:
    """The induction variable of a loop.

    `order` grows (or falls, if `direction` is -1) from iteration to iteration; `before` is the number of earlier
    iterations, None if it has no linear form; `value` is what the target of a For holds.
    """

    order: Symbol
    direction: int
    before: Linear | None
    value: Linear


class Integers:
    """Evaluates integer expressions to affine forms.

    Structured SSA gives a variable one value per iteration of the enclosing loops, so that a variable is either
    substituted by its definition, or an opaque symbol: shared when it is set once in a call, else a symbol of one
    execution.

    Parameters
    ----------
    sites : Sites
        Sites and definitions of the function.
    extent : callable
        `extent(array, axis, site)`: the size of an axis as a form.
    """

    def __init__(self, sites: Sites, extent: Extent) -> None:
        self.sites = sites
        self.extent = extent
        self._loops: dict[Stmt, InductionVariable] = {}
        self._defined: dict[Var, Linear] = {}
        self._params: dict[Var, Linear] = {}
        self._final: dict[Var, Linear] = {}
        self._carried: dict[tuple[Var, Stmt], Linear] = {}
        self._derived: dict[tuple[object, ...], Linear] = {}
        self._domains: dict[Site, Formula] = {}

    # ---- names -------------------------------------------------------------------------------------------------------

    def name(self, var: Var, site: Site) -> Linear:
        """The value of an integer variable at a site."""
        definitions = self.sites.definitions.get(var, [])
        loop = self.sites.counting(var, site)
        if loop is not None:
            return self.induction_variable(loop).value
        if var in self.sites.counted:
            return self.unknown(var.name, site)
        if var in self.sites.params:
            if not definitions:
                return self._opaque(self._params, var, ())
            return self._merge(var, definitions, None, site)
        if len(definitions) == 1:
            return self._single(var, definitions[0], site)
        if not definitions:
            return self.unknown(var.name, site)
        return self._merge(var, definitions[1:], definitions[0], site)

    def unknown(self, name: str, site: Site, *, nonnegative: bool = False) -> Linear:
        """A new unconstrained symbol for one execution of a statement."""
        return Affine.atom(Symbol(name, site.loops, nonnegative=nonnegative))

    def _opaque(self, table: dict[Var, Linear], var: Var, loops: tuple[Stmt, ...]) -> Linear:
        if var not in table:
            table[var] = Affine.atom(Symbol(var.name, loops))
        return table[var]

    def _single(self, var: Var, definition: Definition, site: Site) -> Linear:
        if var not in self._defined:
            value = None
            if definition.value is not None and _is_exact(var):
                value = self.value(definition.value, definition.site)
            if value is not None:
                self._defined[var] = value
        value = self._opaque(self._defined, var, definition.site.loops)
        if loops_of(value) <= set(site.loops):
            return value
        if set(definition.site.loops).isdisjoint(site.loops):  # after the loops: the value of the last iteration
            return self._opaque(self._final, var, ())
        return self.unknown(var.name, site)

    def _merge(self, var: Var, later: list[Definition], first: Definition | None, site: Site) -> Linear:
        """A phi; `first` is None for a parameter."""
        outer = () if first is None else first.site.loops
        inner = {definition.site.loops for definition in later}
        if inner == {outer}:
            if first is None or not _are_exclusive([first, *later]):
                return self.unknown(var.name, site)
            return self._joined(var, [first, *later], site)
        carriers = {loops[-1] for loops in inner if loops[:-1] == outer and loops}
        if len(inner) != 1 or len(carriers) != 1:
            return self.unknown(var.name, site)
        (carrier,) = carriers
        if first is not None and first.site.order(self.sites.at[carrier]) != "before":
            return self.unknown(var.name, site)
        if carrier in site.loops:
            return self._in_loop(var, carrier, later, first, outer)
        loop_site = self.sites.at[carrier]
        if site.order(loop_site) in ("before", "same") and (first is None or first.site.order(site) == "before"):
            return self._initial(var, first)
        if not outer and site.order(loop_site) == "after":
            return self._opaque(self._final, var, ())
        return self.unknown(var.name, site)

    def _joined(self, var: Var, definitions: list[Definition], site: Site) -> Linear:
        """A variable that each branch of an If assigns: one of the values, the same one for all later reads."""
        values = [None if d.value is None else self.value(d.value, d.site) for d in definitions]
        made = var not in self._defined
        result = self._single(var, Definition(definitions[0].site, None), site)
        known = [value for value in values if value is not None]
        if made and _is_exact(var) and len(known) == len(values):
            for symbol in self._defined[var].atoms:
                symbol.facts.append(Or(tuple(equal(self._defined[var], value) for value in known)))
        return result

    def _initial(self, var: Var, first: Definition | None) -> Linear:
        if first is None:
            return self._opaque(self._params, var, ())
        value = self.value(first.value, first.site) if first.value is not None and _is_exact(var) else None
        if value is not None:
            return value
        key = ("initial", var)
        if key not in self._derived:
            self._derived[key] = Affine.atom(Symbol(var.name, first.site.loops))
        return self._derived[key]

    def _in_loop(
        self, var: Var, carrier: Stmt, later: list[Definition], first: Definition | None, outer: tuple[Stmt, ...]
    ) -> Linear:
        """A loop-carried variable in its loop: `start + step * iteration` if each iteration adds the same constant."""
        key = (var, carrier)
        if key in self._carried:
            return self._carried[key]
        symbol = Symbol(var.name, (*outer, carrier))
        value = self._carried[key] = Affine.atom(symbol)
        if not _is_exact(var):
            return value
        steps: set[Linear] = set()
        for definition in later:
            latch = None if definition.value is None else self.value(definition.value, definition.site)
            if latch is None:
                return value
            steps.add(latch - value)
        if len(steps) != 1 or not _always_latched(carrier, var):
            return value
        (step,) = steps
        if not step.terms:
            before = self.induction_variable(carrier).before
            start = self._initial(var, first)
            if before is not None:
                symbol.facts.append(equal(value, start + before * step.constant))
                if step.constant >= 0 and is_trivially_nonnegative(start):
                    symbol.nonnegative = True
        return value

    # ---- loops -------------------------------------------------------------------------------------------------------

    def induction_variable(self, loop: Stmt) -> InductionVariable:
        """The induction variable of a loop."""
        if loop not in self._loops:
            self._loops[loop] = self._for(loop) if isinstance(loop, For) else self._fictitious(loop, "trip")
        return self._loops[loop]

    def _fictitious(self, loop: Stmt, name: str) -> InductionVariable:
        loops = (*self.sites.at[loop].loops, loop)
        trip = Symbol(f"{name}_trip", loops, nonnegative=True)
        return InductionVariable(trip, 1, Affine.atom(trip), Affine.atom(Symbol(name, loops)))

    def _for(self, loop: For) -> InductionVariable:
        site = self.sites.at[loop]
        step = loop.step.value if isinstance(loop.step, Const) else None
        if type(step) is not int or step == 0:
            return self._fictitious(loop, loop.target.name)
        loops = (*site.loops, loop)
        start, stop = self.value(loop.start, site), self.value(loop.stop, site)
        symbol = Symbol(loop.target.name, loops)
        value = Affine.atom(symbol)
        sign = 1 if step > 0 else -1
        before = None
        if start is not None:
            before = (value - start) * sign
            symbol.facts.append(at_least(before, 0))
            symbol.nonnegative |= sign > 0 and is_trivially_nonnegative(start)
            if abs(step) > 1:
                before = Affine.atom(Symbol(f"{loop.target.name}_trip", loops, nonnegative=True))
                symbol.facts.append(equal(value, start + before * step))
        if stop is not None:
            symbol.facts.append(at_least((stop - value) * sign, 1))
            symbol.nonnegative |= sign < 0 and is_trivially_nonnegative(stop + 1)
        return InductionVariable(symbol, sign, before, value)

    # ---- expressions -------------------------------------------------------------------------------------------------

    def value(self, expr: Expr, site: Site) -> Linear | None:
        """The affine form of an integer expression evaluated at a site, or None if it has none."""
        match expr:
            case Const(value):
                return Affine(value) if type(value) is int else None
            case Var(_, Scalar(dtype)):
                return self.name(expr, site) if dtype.startswith(("int", "uint")) else None
            case Call(func, args, ()):
                return self._call(func, args, expr, site)
        return None

    def _call(self, func: Callable[..., object], args: tuple[Expr, ...], expr: Expr, site: Site) -> Linear | None:
        match args:
            case (Var() as array, Const(int() as axis)) if func is intrinsics.dim and isinstance(array.type, Array):
                return self.extent(array, axis % array.type.rank, site)
            case (Var() as array,) if func is len and isinstance(array.type, Array):
                return self.extent(array, 0, site)
            case (Var() as array,) if func is np.size and isinstance(array.type, Array) and array.type.rank == 1:
                return self.extent(array, 0, site)
            case (test, a, b) if func is intrinsics.ifelse:
                return self._choice(test, a, b, site)
        if not isinstance(expr.type, Scalar) or expr.type.dtype not in _EXACT:
            return None
        values = []
        for arg in args:
            if not isinstance(arg.type, Scalar) or (value := self.value(arg, site)) is None:
                return None
            values.append(value)
        return self._arithmetic(func, values)

    def _arithmetic(self, func: Callable[..., object], values: list[Linear]) -> Linear | None:
        if is_one_of(func, _MINIMA | _MAXIMA) and len(values) > 1:
            return self.extreme(values, -1 if is_one_of(func, _MINIMA) else 1)
        match values:
            case [a]:
                if func is operator.neg:
                    return -a
                if func in (operator.pos, int, operator.index, np.int64):
                    return a
                if func in (abs, operator.abs):
                    return self.extreme([a, -a], 1)
            case [a, b]:
                if func is operator.add:
                    return a + b
                if func is operator.sub:
                    return a - b
                if func is operator.mul and not b.terms:
                    return a * b.constant
                if func is operator.mul and not a.terms:
                    return b * a.constant
                if func is operator.floordiv and not b.terms and b.constant > 0:
                    return self.quotient(a, b.constant)
                if func is operator.mod and not b.terms and b.constant > 0:
                    return a - self.quotient(a, b.constant) * b.constant
        return None

    def derive(self, key: tuple[object, ...], inputs: list[Linear], fact: Callable[[Linear], Formula]) -> Linear:
        """A symbol that a fact determines uniquely from the inputs."""
        if key not in self._derived:
            symbol = Symbol(str(key[0]), frozenset().union(*map(loops_of, inputs)))
            value = self._derived[key] = Affine.atom(symbol)
            symbol.facts.append(fact(value))
        return self._derived[key]

    def extreme(self, values: list[Linear], sign: int) -> Linear:
        """The largest (sign 1) or smallest (sign -1) of some values."""

        def fact(result: Linear) -> Formula:
            return And(
                (
                    *(at_least((result - value) * sign, 0) for value in values),
                    Or(tuple(equal(result, value) for value in values)),
                )
            )

        known = values[0]
        if all(not (value - known).terms for value in values):
            return max(values, key=lambda value: value.constant * sign)
        result = self.derive(("max" if sign > 0 else "min", *values), values, fact)
        nonnegative = (any if sign > 0 else all)(is_trivially_nonnegative(value) for value in values)
        result.atoms[0].nonnegative |= nonnegative
        return result

    def quotient(self, value: Linear, divisor: int) -> Linear:
        def fact(result: Linear) -> Formula:
            rest = value - result * divisor
            return And((at_least(rest, 0), at_least(divisor - 1, rest)))

        if not value.terms:
            return Affine(value.constant // divisor)
        result = self.derive(("quotient", value, divisor), [value], fact)
        result.atoms[0].nonnegative |= is_trivially_nonnegative(value)
        return result

    def _choice(self, test: Expr, a: Expr, b: Expr, site: Site) -> Linear | None:
        then, other = self.value(a, site), self.value(b, site)
        if then is None or other is None:
            return None
        holds, fails = self.condition(test, True, site), self.condition(test, False, site)
        result = Symbol("choice", site.loops)
        yes = equal(Affine.atom(result), then)
        no = equal(Affine.atom(result), other)
        result.facts.append(
            Or((And((yes, *([] if holds is None else [holds]))), And((no, *([] if fails is None else [fails])))))
        )
        return Affine.atom(result)

    # ---- conditions --------------------------------------------------------------------------------------------------

    def condition(self, test: Expr, sense: bool, site: Site) -> Formula | None:
        """The constraint that holds where a test evaluated at a site gave `sense`; None if nothing is known."""
        match test:
            case Const(bool() as value):
                return And(()) if value == sense else Or(())
            case Call(operator.not_, (inner,)):
                return self.condition(inner, not sense, site)
            case Call(intrinsics.and_ | intrinsics.or_, parts):
                known = [self.condition(part, sense, site) for part in parts]
                if (test.func is intrinsics.and_) == sense:
                    kept = tuple(part for part in known if part is not None)
                    return And(kept) if kept else None
                return Or(tuple(part for part in known if part is not None)) if None not in known else None
            case Call(func, (a, b)) if is_one_of(func, _COMPARISONS):
                left = self.value(a, site) if isinstance(a.type, Scalar) else None
                right = self.value(b, site) if isinstance(b.type, Scalar) else None
                if left is None or right is None:
                    return None
                holds = _comparison(func, left, right)
                return holds if sense else holds.negated()
        return None

    def domain(self, site: Site) -> Formula:
        """Conditions on the counters under which a site is reached (necessary, not sufficient)."""
        if site not in self._domains:
            parts: list[Formula] = []
            for loop in site.loops:
                parts.extend(self.induction_variable(loop).order.facts)
                if isinstance(loop, While) and loop is not site.stmt:
                    header = self.sites.header(loop)
                    assert header is not None
                    known = self.condition(loop.test, True, header)
                    parts.extend([] if known is None else [known])
            for test, sense, at in site.guards:
                known = self.condition(test, sense, at)
                parts.extend([] if known is None else [known])
            self._domains[site] = And(tuple(parts))
        return self._domains[site]


def _is_exact(var: Var) -> bool:
    return isinstance(var.type, Scalar) and var.type.dtype in _EXACT


def _are_exclusive(definitions: list[Definition]) -> bool:
    """Whether the statements are in mutually exclusive branches."""
    return all(a.site.order(b.site) == "exclusive" for k, a in enumerate(definitions) for b in definitions[:k])


def _comparison(func: Callable[..., object], a: Linear, b: Linear) -> Atom | Or:
    if func is operator.lt:
        return at_least(b - a, 1)
    if func is operator.le:
        return at_least(b, a)
    if func is operator.gt:
        return at_least(a - b, 1)
    if func is operator.ge:
        return at_least(a, b)
    if func is operator.eq:
        return equal(a, b)
    return Or((at_least(a - b, 1), at_least(b - a, 1)))


def _always_latched(loop: Stmt, var: Var) -> bool:
    """Whether each path through a loop body that leads to a further iteration assigns a variable exactly once."""
    assert isinstance(loop, (For, While))
    ends = _ends(loop.body, var, {0})
    return ends["fall"] | ends["continue"] <= {1}


def _ends(block: Block, var: Var, counts: set[int]) -> dict[str, set[int]]:
    """How often a variable may have been assigned at the end of a block, or where the next iteration begins."""
    again: set[int] = set()
    for stmt in block:
        match stmt:
            case Assign(targets) if var in targets:
                counts = {count + 1 for count in counts}
            case If(_, body, orelse):
                yes, no = _ends(body, var, counts), _ends(orelse, var, counts)
                counts = yes["fall"] | no["fall"]
                again |= yes["continue"] | no["continue"]
            case Continue():
                again |= counts
                counts = set()
            case Break() | Raise():
                counts = set()
        if not counts:
            break
    return {"fall": counts, "continue": again}
