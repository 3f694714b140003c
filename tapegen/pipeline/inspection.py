"""Inspection: generated source of a function, and what its derivative saves, for a terminal or a notebook."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegen.backend.printer.module import expression_text
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import InternalError, Span, TapegenError
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Call, Const, Expr, Function, Return, Var
from tapegen.ir.printer import function_text
from tapegen.ir.types import Array, ListOf, Scalar, Type
from tapegen.pipeline.artifacts.generated_text import compiled_text, readable_text, stage_text, verdicts
from tapegen.pipeline.artifacts.program import Program
from tapegen.pipeline.html_view import LEGEND, ReportRow, report_html, view_html
from tapegen.pipeline.stages import STAGES

if TYPE_CHECKING:
    from tapegen.loops.parallel.outlining import Verdict
    from tapegen.pipeline.passes.derivation import Stages
    from tapegen.transform.recording.decisions import Decision, Schedule, Tape

_WAYS = {way: label for way, (label, *_) in LEGEND.items()} | {"live": "live"}
_INTEGER = {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, max, min, abs}


@dataclass(frozen=True, slots=True)
class AvailableValue:
    """How one value of the primal becomes available to the backward sweep.

    Attributes
    ----------
    name : str
        The variable.
    way : str
        "record" (written to a tape), "recompute" (recomputed), "induction" (known from the iteration being
        reversed) or "live" (never overwritten).
    why : str
        The reason.
    size : str
        Bytes as a formula, for recorded values and copies.
    bytes : int or None
        Bytes; None where they depend on trip counts or on sizes that are not given.
    line : str
        The user's statement that computes the value, with its line number.
    origin : Span or None
        Its place.
    loop : Span or None
        The innermost loop that records it; None outside of loops.
    tape : str
        The variable that holds the recorded values.
    """

    name: str
    way: str
    why: str
    size: str = ""
    bytes: int | None = 0
    line: str = ""
    origin: Span | None = field(default=None, compare=False, repr=False)
    loop: Span | None = field(default=None, compare=False, repr=False)
    tape: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop or an array statement that threads may run.

    Attributes
    ----------
    line : str
        The user's statement, with its line number.
    sweep : str
        "forward" or "backward".
    reason : str
        Why it runs in one thread; empty where several run it if it is long enough.
    """

    line: str
    sweep: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What is active, what is recorded and why.

    Attributes
    ----------
    function : str
        The name of the primal.
    inputs, results : tuple of str
        Inputs and results of the derivative.
    active : tuple of str
        Values that depend on the inputs and influence the results.
    values : tuple of Kept
        Every value the backward sweep reads, recorded ones first.
    copies : tuple of Kept
        Arrays of the caller that the split form copies, because its pullback reads them later.
    loops : tuple of Loop
        Under `parallel=True`, the outermost loops of the compiled gradient; where one runs in order, those in it too.
    memory : tuple of str
        What a budget of memory means for these arguments: which loops are checkpointed, and at what cost.
    """

    function: str
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    active: tuple[str, ...]
    values: tuple[AvailableValue, ...] = ()
    copies: tuple[AvailableValue, ...] = ()
    loops: tuple[Loop, ...] = ()
    memory: tuple[str, ...] = ()

    @property
    def recorded(self) -> tuple[AvailableValue, ...]:
        """The values that are written to tapes."""
        return tuple(value for value in self.values if value.way == "record")

    @property
    def recorded_bytes(self) -> int | None:
        """Bytes on tapes; None where a loop records whose trip count is not known on entry."""
        return _total(self.recorded)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Name, way, bytes, reason and line of each value."""
        return [(row.name, _WAYS[row.way], row.size, row.why, row.line) for row in self.table()]

    def facts(self) -> list[tuple[str, str]]:
        """The lines above the table: label and names."""
        live = [value.name for value in self.values if value.way == "live"]
        total = self.recorded_bytes
        recorded = "nothing" if not self.recorded else "see below" if total is None else f"{total:,} bytes"
        found = [
            ("derivative of", ", ".join(self.results)),
            ("with respect to", ", ".join(self.inputs)),
            ("active", ", ".join(self.active)),
            ("recorded", recorded),
            (_WAYS["live"], ", ".join(live)),
        ]
        found += [("memory" if k == 0 else "", line) for k, line in enumerate(self.memory)]
        return [(label, names) for label, names in found if names]

    def __str__(self) -> str:
        lines = [self.function, ""]
        lines += _columns([(f"  {label}", names) for label, names in self.facts()])
        rows = self.rows()
        if rows:
            lines += [
                "",
                *_columns([("  value", "how", "bytes", "why", "line"), *((f"  {r[0]}", *r[1:]) for r in rows)]),
            ]
        if self.loops:
            how = [(f"  {e.line}", e.sweep, f"one: {e.reason}" if e.reason else "several") for e in self.loops]
            lines += ["", *_columns([("  loop", "sweep", "threads"), *how])]
        return "\n".join(lines)

    def table(self) -> list[ReportRow]:
        """The rows with what a picture of them needs."""
        rows = [
            ReportRow(value.name, value.way, _size(value), value.bytes, value.why, value.line, value.origin)
            for value in self.values
            if value.way != "live"
        ]
        return rows + [ReportRow(v.name, "copied", _size(v), v.bytes, v.why, "", None) for v in self.copies]

    def _repr_html_(self) -> str:
        return report_html(self.facts(), self.table())


class Inspection:
    """The generated programs of one specialization, each printed when it is first accessed.

    Parameters
    ----------
    program : Program
        The specialization.
    stages : Stages
        The programs.
    leaves : sequence, optional
        Values of the primal's parameters, from whose shapes the recorded bytes are computed.
    functions : sequence of function, optional
        The user's functions that the primal was lowered from.
    memory : sequence of str
        What a budget of memory means for these values.
    schedules : sequence of Schedule
        The segments of checkpointed loops.

    Attributes
    ----------
    primal : str
        The primal as tapegen lowered it.
    forward, backward : str
        The readable pair: a function that computes the value and returns the saved values, and its pullback.
    joint : str
        Value and gradient in one function.
    compiled : str
        The joint function as numba compiles it.
    tangent : str
        The value and its derivative along a direction in one function.
    stages : mapping of str to str
        The lowered program ("lower"), and the result of each pass, by the names of the passes in order: IR up to
        the pass that assembles the derivative, then source on the way to `compiled`.
    report : Report
        What is active, what is recorded and why.
    """

    def __init__(
        self,
        program: Program,
        stages: Stages,
        leaves: Sequence[Any] | None = None,
        functions: Sequence[FunctionType] = (),
        memory: Sequence[str] = (),
        schedules: Sequence[Schedule] = (),
    ) -> None:
        self._functions = functions
        self._program = program
        self._programs = stages
        self._sizes = _Sizes(stages, leaves)
        self._sizes.values |= {cut.interval.name: k.interval for cut, k in zip(stages.cuts, schedules, strict=False)}
        self._memory = tuple(memory)

    @cached_property
    def report(self) -> Report:
        report = _reported(self._programs, self._sizes)
        loops = [_loop(verdict) for verdict in verdicts(self._program, self._programs.joint)]
        return replace(report, loops=tuple(dict.fromkeys(loops)), memory=self._memory)

    @cached_property
    def primal(self) -> str:
        return readable_text(self._program, self._program.primal).text

    @cached_property
    def forward_source(self) -> PythonSource:
        """The forward sweep with its map to the user's lines."""
        return readable_text(self._program, self._programs.record)

    @cached_property
    def backward_source(self) -> PythonSource:
        """The backward sweep with its map to the user's lines."""
        return readable_text(self._program, self._programs.pullback)

    @property
    def forward(self) -> str:
        return self.forward_source.text

    @property
    def backward(self) -> str:
        return self.backward_source.text

    @cached_property
    def joint(self) -> str:
        return readable_text(self._program, self._programs.joint).text

    @cached_property
    def compiled(self) -> str:
        try:
            return compiled_text(self._program, self._programs.joint, short_axes=self._program.short_axes).text
        except InternalError:
            raise
        except TapegenError as error:
            return "".join(f"# {line}\n" for line in str(error).splitlines())

    @cached_property
    def tangent(self) -> str:
        return readable_text(self._program, self._program.pushed).text

    @cached_property
    def stages(self) -> Mapping[str, str]:
        return _Lazy(STAGES, self._stage)

    def _stage(self, name: str) -> str:
        if name == "lower":
            return function_text(self._programs.lowered, types=True)
        return stage_text(self._program, self._programs, name)

    def __str__(self) -> str:
        return "\n\n".join([str(self.report), _ruler("forward"), self.forward, _ruler("backward"), self.backward])

    def __repr__(self) -> str:
        parts = ".primal .forward .backward .joint .compiled .tangent .stages .report"
        return f"<inspection of {self.report.function}: {parts}>"

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, *, legend: bool = False) -> str:
        """The report and both sweeps side by side, as a notebook shows them."""
        titles = ("forward", "backward", "primal", "joint", "compiled")
        return view_html(
            self.report.function,
            self.report.facts(),
            self.report.table(),
            (self.forward_source, self.backward_source),
            self._functions,
            [(title, getattr(self, title)) for title in titles],
            legend=legend,
        )


class _Lazy(Mapping[str, str]):
    """Source by name, each printed on demand."""

    def __init__(self, names: Sequence[str], printed: Callable[[str], str]) -> None:
        self._names, self._printed = names, printed

    def __getitem__(self, name: str) -> str:
        if name not in self._names:
            raise KeyError(f"{name!r} is no stage; there are {', '.join(self._names)}")
        return self._printed(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


# ---- the report ------------------------------------------------------------------------------------------------------


def report_of(stages: Stages, leaves: Sequence[Any] | None = None) -> Report:
    """The report of what a derivative saves.

    Parameters
    ----------
    stages : Stages
        The programs of the derivative.
    leaves : sequence, optional
        Values of the primal's parameters; without them bytes are formulas where sizes are not constant.
    """
    return _reported(stages, _Sizes(stages, leaves))


def _reported(stages: Stages, sizes: _Sizes) -> Report:
    tapes = {tape.var: tape for tape in stages.tapes}
    values = [
        sizes.available(decision, tapes.get(decision.var))
        for decision in stages.decisions
        if decision.way != "record" or decision.var in tapes
    ]
    order = list(_WAYS)
    values.sort(key=lambda value: order.index(value.way))
    owned = [var for var in stages.kept if isinstance(var.type, Array) and var in stages.lowered.params]
    last = stages.lowered.body[-1]
    assert isinstance(last, Return)
    useful = stages.facts.activity.useful
    return Report(
        stages.lowered.name,
        tuple(var.name for var in stages.wrt),
        tuple(dict.fromkeys(v.name for v in last.values if isinstance(v, Var) and v in useful)),
        tuple(var.name for var in _in_order(stages.lowered, stages.facts.activity.active)),
        tuple(values),
        tuple(sizes.copied(var) for var in owned),
    )


def _loop(verdict: Verdict) -> Loop:
    origin = verdict.origin
    line = "" if origin is None else f"{origin.line}: {origin.text()}"
    return Loop(line, "backward" if verdict.backward else "forward", verdict.reason)


def _in_order(function: Function, chosen: Iterable[Var]) -> list[Var]:
    """Vars in the order in which the program defines them."""
    wanted = set(chosen)
    found = dict.fromkeys(function.params)
    for stmt in traversal.statements(function.body):
        found.update(dict.fromkeys(stmt.targets))
    return [var for var in found if var in wanted]


class _Sizes:
    """Sizes of tapes and arrays, as formulas and as integers."""

    def __init__(self, stages: Stages, leaves: Sequence[Any] | None) -> None:
        self.shapes = stages.facts.shapes
        self.assigns = stages.facts.scopes.assigns
        given = zip(stages.lowered.params, leaves or (), strict=False)
        self.values = {param.name: value.shape if isinstance(value, np.ndarray) else value for param, value in given}

    def available(self, decision: Decision, tape: Tape | None) -> AvailableValue:
        size, count = ("", 0) if tape is None else self._tape(tape)
        around = () if tape is None else tape.scope.chain
        loop = next((scope.header.origin for scope in around if scope.is_loop and scope.header), None)
        store = "" if tape is None else tape.store.name
        assigns = self.assigns.get(decision.var, ())
        origin = assigns[-1].origin if assigns else None
        line = "" if origin is None else f"{origin.line}: {origin.text()}".rstrip(": ")
        return AvailableValue(decision.var.name, decision.way, decision.why, size, count, line, origin, loop, store)

    def copied(self, var: Var) -> AvailableValue:
        """A parameter that the split variant copies."""
        assert isinstance(var.type, Array)
        extents = [Call(intrinsics.dim, (var, Const(axis)), (), Scalar("int64")) for axis in range(var.type.rank)]
        size, count = self._product(var.type, extents)
        return AvailableValue(var.name, "live", "the caller may change it before the pullback runs", size, count)

    def _tape(self, tape: Tape) -> tuple[str, int | None]:
        if isinstance(tape.store.type, ListOf):
            return "a list of arrays", None
        if tape.exact:
            return self._product(tape.store.type, tape.shape)
        return self._product(tape.store.type, tape.shape[1:])[0] + " per pass", None

    def _product(self, type_: Type, extents: Sequence[Expr]) -> tuple[str, int | None]:
        assert isinstance(type_, Array)
        item = np.dtype(type_.dtype).itemsize
        formula: Expr = Const(item)
        for extent in extents:
            formula = Call(operator.mul, (formula, extent), (), Scalar("int64"))
        numbers = [self._number(extent) for extent in extents]
        count = None if None in numbers else item * math.prod(n for n in numbers if n is not None)
        return expression_text(formula), count

    def _number(self, expr: Expr) -> int | None:
        match expr:
            case Const(int(value)):
                return value
            case Var(name):
                if isinstance(self.values.get(name), int | np.integer):
                    return int(self.values[name])
                assigns = self.assigns.get(expr, [])
                return self._number(assigns[0].value) if len(assigns) == 1 else None
            case Call(intrinsics.dim, (Var() as array, Const(int(axis)))):
                return self._extent(array, axis)
            case Call(np.size, (Var() as array,)):
                extents = [self._extent(array, axis) for axis in range(len(self.shapes.of(array)))]
                return None if None in extents else math.prod(n for n in extents if n is not None)
            case Call(func, args) if func in _INTEGER:
                numbers = [self._number(arg) for arg in args]
                return None if None in numbers else int(func(*numbers))
        return None

    def _extent(self, array: Var, axis: int) -> int | None:
        """An extent as far as it follows from the shapes of the parameters."""
        total, terms = self.shapes.of(array)[axis]
        for (kind, name, position), coefficient in terms:
            value = self.values.get(name)
            if kind == "param" and isinstance(value, tuple):
                total += coefficient * value[position]
            elif kind == "int" and isinstance(value, int | np.integer):
                total += coefficient * int(value)
            else:
                return None
        return total


# ---- tables ----------------------------------------------------------------------------------------------------------


def _total(values: Iterable[AvailableValue]) -> int | None:
    counts = [value.bytes for value in values]
    return None if None in counts else sum(count for count in counts if count is not None)


def _size(value: AvailableValue) -> str:
    if value.bytes is None or (value.size and not value.bytes):
        return value.size
    return f"{value.bytes:,}" if value.size else ""


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _ruler(title: str) -> str:
    return f"# ---- {title} ".ljust(72, "-")
