"""Lowering context: the state of a path, the current block, the current function, and control signals."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import gast

from tapegen.errors import NotDifferentiable, Span, TapegenError
from tapegen.frontend.templates.builtin_functions import is_own
from tapegen.frontend.values.assumptions import Assumptions
from tapegen.frontend.values.pytree import Leaf, Struct
from tapegen.frontend.values.state import WARNINGS, Cell, ContainerTable, Frame, Head, Key, Ref, RunList, Series, State
from tapegen.frontend.values.symbol_table import SymbolTable, age
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Assign, Call, Comment, Const, Effect, Expr, Raise, Store, Tuple, Var
from tapegen.ir.traversal import free_vars
from tapegen.ir.types import Array, ListOf, Type, is_floating

# ---- open blocks -----------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Builder:
    """An open block.  `dead` once no path reaches its end."""

    items: list[Any] = field(default_factory=list)
    dead: bool = False


@dataclass(eq=False, slots=True)
class OpenIf:
    test: Expr
    body: Builder
    orelse: Builder
    origin: Span | None


@dataclass(eq=False, slots=True)
class OpenLatch:
    """The parallel assignment to joined or carried variables at the end of a path, or (`first`) before the loop."""

    pairs: list[tuple[Var, Expr]]
    origin: Span | None
    first: bool = False


@dataclass(eq=False, slots=True)
class OpenLoop:
    """A For (`target` given) or a While (`test` given)."""

    body: Builder
    origin: Span | None
    test: Expr = Const(True)
    target: Var | None = None
    bounds: tuple[Expr, Expr, Expr] | None = None


# ---- signals -------------------------------------------------------------------------------------------------------


class NeedsConstant(Exception):
    """An integer must be known at compile time.  Loops unroll and arguments become static until it is."""

    def __init__(self, expr: Expr, refusal: TapegenError) -> None:
        super().__init__()
        self.expr = expr
        self.refusal = refusal


class NeedsStatements(Exception):
    """The expression needs statements, which cannot be emitted inside a condition."""


class Restart(Exception):
    """A new fact about a recursive function or a loop was found; lowering restarts."""


class Unreachable(Exception):
    """No statement after this one runs: an exception is raised here."""


_EXPECTED = (TapegenError, NeedsConstant, NeedsStatements, Restart, Unreachable)
"""Control signals of lowering, which are not errors."""


def _not_set(*_: Any) -> NoReturn:
    raise AssertionError("the context is made by lower.new_context")


# ---- the context ---------------------------------------------------------------------------------------------------

MOST_INLINED = 4000
"""Limit of inlined calls in one program."""


OF_GROWING_LIST = "this changes an item of a list that grows while the program runs."
APART = (
    "Keep the numbers in arrays, one for each attribute (position[i] = ...), or put a changed copy in the place: "
    "items[i] = ..."
)


def _reads_lists(expr: Expr) -> bool:
    return any(type(part.type) is ListOf for part in free_vars(expr))


class Context:
    """The shared state of lowering one program."""

    def __init__(self, *, rules: bool = False) -> None:
        self.rules = rules  # lowering the body of a rule: constants are folded
        self.assumptions = Assumptions()
        self.symbols = SymbolTable()
        self.containers = ContainerTable()
        self.builder = Builder()
        self.state = State({}, {})
        self.frame: Frame = None  # type: ignore[assignment]  # set before lowering starts
        self.node: gast.AST | None = None
        self.origin: Span | None = None
        self.fixed_origin = False
        self.whole = False  # inside a condition: no statements may be emitted
        self.sweep: Comment | None = None  # start of the backward sweep of the last inlined derivative,
        self.sweep_ends = (0, 0)  # and where it ends: in which block, after how many statements
        self.effects = 0  # statements so far that may change the value of an expression
        self.heads: list[Head] = []
        self.loop: tuple[Any, Set[int]] = None, frozenset()  # the innermost `for`, and containers made before it
        self.written_out: dict[Any, TapegenError] | None = None  # loops that must be unrolled, and why
        self.calls: list[tuple[Any, tuple[Any, ...]]] = []
        self.call_sites: list[Span | None] = []  # of the user's functions that are being inlined
        self.inlined: Counter[Any] = Counter()
        self.recursion: Any = None  # these two belong to `calls.recursion`
        self.routines: Any = None
        self.open_tries = 0  # open `try` statements on this path, see `desugar_try`
        self.caller: Any = None  # a `CallerState`
        self.communication: Any = None  # a `calls.communication.Communication`, of a program that may say something
        self.unrolled: set[Any] = set()
        self.kept: list[Any] = []
        self.collect: Callable[..., Any] = _not_set  # collect(cx, function, args, kwargs): the items of a generator
        self.check_emitted: Callable[[Context, Any], None] = _not_set  # where warnings are errors, `lowering.warnings`
        self.call: Callable[..., Any] = _not_set  # call(cx, function, args, kwargs): set by `lower`
        self._names = 0
        self._cells = 0

    @property
    def now(self) -> int:
        """The age of a variable made now."""
        return self._names

    def age(self, var: Var) -> int:
        """The creation age of a variable: a younger one has a higher age."""
        return age(var)

    # ---- names and statements ----------------------------------------------------------------------------------------

    def new_var(self, base: str, type_: Type) -> Var:
        """A Var with a unique name; `lowering.finalize` gives it its final name."""
        self._names += 1
        return Var(f"{base.strip()}#{self._names}", type_)

    def emit(self, stmt: Any) -> None:
        """Emit a statement."""
        if self.whole:
            raise NeedsStatements
        self.builder.items.append(stmt)
        if not isinstance(stmt, Assign):
            self.effects += 1
        if WARNINGS in self.state.vars:
            self.check_emitted(self, stmt)

    def assign(self, base: str, value: Expr) -> Var:
        """Bind a value to a new variable."""
        var = self.new_var(base, value.type)
        self.emit(Assign((var,), value, self.origin))
        if isinstance(value.type, Array) or not is_floating(value.type):
            self.symbols.definitions[var] = value
            if isinstance(value, Call) and value.func in (intrinsics.real_part, intrinsics.imaginary_part):
                self.symbols.roots[var] = self.symbols.roots_of(value.args[0])  # type: ignore[arg-type]
        return var

    def atom(self, expr: Expr, base: str = TEMPORARY) -> Expr:
        """The expression as an operand of a floating call: a Var, a Const, a Tuple of these, a shape."""
        if isinstance(expr, (Var, Const)) or self.whole:
            return expr
        if isinstance(expr, Tuple):
            return Tuple(tuple(self.atom(item) for item in expr.items))
        if isinstance(expr, Call) and expr.func is intrinsics.shape and isinstance(expr.args[0], Var):
            return expr
        return self.assign(base, expr)

    def store(self, array: Var, index: tuple[Any, ...], value: Expr, *, accumulate: bool = False) -> None:
        """Emit a store into an array."""
        self.emit(Store(array, index, value, accumulate, self.origin))

    def effect(self, call: Call) -> None:
        self.emit(Effect(call, self.origin))

    def raise_(self, exception: type[BaseException], *message: str | Expr) -> NoReturn:
        """Emit a Raise; no statement after it runs."""
        parts = tuple(Const(part) if isinstance(part, str) else part for part in message)
        self.emit(Raise(exception, parts, self.origin))
        self.builder.dead = True
        raise Unreachable

    def raise_if(self, test: Expr, exception: type[BaseException], *message: str | Expr) -> None:
        """Emit a Raise under the condition `test`."""
        if self.whole:
            raise NeedsStatements
        parts = tuple(Const(part) if isinstance(part, str) else part for part in message)
        body = Builder([Raise(exception, parts, self.origin)], dead=True)
        self.emit(OpenIf(test, body, Builder(), self.origin))

    @contextmanager
    def block(self, builder: Builder, state: State) -> Iterator[None]:
        """Emit into another block, starting from `state`."""
        outer = self.builder, self.state, self.whole
        self.builder, self.state, self.whole = builder, state, False
        try:
            yield
        finally:
            self.builder, self.state, self.whole = outer

    def at(self, node: gast.AST, *, statement: bool = False) -> _At:
        """Evaluate a node: refusals point at it, and statements belong to it when it is one."""
        return _At(self, node, statement)

    # ---- containers --------------------------------------------------------------------------------------------------

    def new_number(self) -> int:
        """The number of a container, or of an iterator."""
        self._cells += 1
        return self._cells

    def new_cell(self, content: Struct | RunList, frozen: str = "") -> Ref:
        number = self.new_number()
        self.state.cells[number] = Cell(self.counted(content), frozen)
        return Ref(number)

    def set_cell(self, ref: Ref, content: Struct | RunList) -> None:
        """Change a mutable container."""
        self.check_change(ref)
        if self.whole:
            raise NeedsStatements
        before = self.state.cells[ref.cell].content
        if isinstance(before, Struct) and isinstance(content, Struct) and before.keys != content.keys:
            self.containers.resized[ref.cell] += 1
        self.state.cells[ref.cell] = Cell(self.counted(content))

    def counted(self, value: Any) -> Any:
        """A value to keep, with variables for what contains lengths of run-time lists, which may change later."""
        if isinstance(value, Struct):
            children = tuple(map(self.counted, value.children))
            same = all(map(operator.is_, children, value.children))
            return value if same else replace(value, children=children)
        if isinstance(value, Leaf) and _reads_lists(value.expr):
            return Leaf(self.assign(TEMPORARY, value.expr), value.known)
        if isinstance(value, Series):
            sizes = dict.fromkeys(part for part in (value.length, *(value.bounds or ())) if not isinstance(part, int))
            fixed = {part: self.assign(TEMPORARY, part) for part in sizes if _reads_lists(part)}
            if fixed:
                length = fixed.get(value.length, value.length)
                if value.bounds is None:
                    return replace(value, length=length)
                start, stop, step = (fixed.get(part, part) for part in value.bounds)
                return replace(value, length=length, bounds=(start, stop, step))
        return value

    def may_change(self, ref: Ref) -> bool:
        """Whether `check_change` lets a container be changed."""
        return not self.state.cells[ref.cell].frozen and ref.cell not in self.containers.copied

    def check_change(self, ref: Ref) -> None:
        """Refuse a change of a container that an alias would miss."""
        reason = self.state.cells[ref.cell].frozen
        advice = "Build a new list, dict or object and return it."
        if not reason and ref.cell in self.containers.copied:
            reason, advice = self.containers.copied[ref.cell], "Put a copy there: list(...) or dict(...)."
        if reason:
            advice = APART if reason == OF_GROWING_LIST else advice
            self.loop_refused(self.containers.made_by.get(ref.cell), self.refusal(NotDifferentiable, reason, advice))

    def note_copy(self, value: Any, reason: str, loop: Any = None) -> None:
        """Record that the containers in a value have been copied, so that they must not be changed any more."""
        if isinstance(value, Ref):
            self.containers.copied[value.cell], self.containers.made_by[value.cell] = reason, loop
            value = self.state.cells[value.cell].content if value.cell in self.state.cells else None
        if isinstance(value, Struct):
            for child in value.children:
                self.note_copy(child, reason, loop)

    def loop_refused(self, loop: Any, refusal: TapegenError) -> NoReturn:
        """Refuse a run-time loop: it is unrolled instead, if its trip count is known."""
        if loop is None or self.written_out is None or loop in self.written_out:
            raise refusal
        self.written_out[loop] = refusal
        raise Restart

    # ---- variables ---------------------------------------------------------------------------------------------------

    def observe(self, key: Key, value: Any) -> None:
        """Record that the program depends on the value of a variable at the start of an iteration."""
        for head in self.heads:
            if key in head.values and head.values[key] is value:
                head.observed.add(key)

    # ---- refusals ----------------------------------------------------------------------------------------------------

    def span(self) -> Span | None:
        made = is_own(self.frame.parsed.file) or (self.frame.is_comprehension and isinstance(self.node, gast.stmt))
        if getattr(self.node, "lineno", None) is None or made:
            return self.origin or self.frame.parsed.span(self.frame.node)
        return self.frame.parsed.span(self.node)

    def refusal(self, kind: type[TapegenError], reason: str, advice: str) -> TapegenError:
        """A refusal of the current construct."""
        return kind(reason, advice, self.span())


class _At:
    """A node of the program while it is evaluated."""

    __slots__ = ("cx", "node", "outer", "statement")

    def __init__(self, cx: Context, node: gast.AST, statement: bool) -> None:
        self.cx, self.node, self.statement = cx, node, statement

    def __enter__(self) -> None:
        cx = self.cx
        self.outer = cx.node, cx.origin
        cx.node = self.node
        if self.statement and not cx.fixed_origin:
            cx.origin = cx.frame.parsed.span(self.node)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if error is not None and not isinstance(error, _EXPECTED) and not hasattr(error, "__tapegen_span__"):
            error.__tapegen_span__ = self.cx.span()  # type: ignore[attr-defined]  # for internal errors
        self.cx.node, self.cx.origin = self.outer
