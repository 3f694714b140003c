"""Export of a trace: the records of a tape as Python source, which is derived and printed like any other function."""

from __future__ import annotations

import keyword
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tapegen.api import Differentiable
from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.pipeline.inspection import Inspection
from tapegen.pipeline.options import Options
from tapegen.tape.engine import pytree
from tapegen.tape.engine.operations import is_stand_in
from tapegen.tape.tensors.closures import Closure
from tapegen.tape.tensors.compiled_fallback import CompiledFallback, Form, written
from tapegen.tape.tensors.indexing import ASTYPE, GETITEM
from tapegen.tape.tensors.records import Record
from tapegen.tape.tensors.tensor import Traced, fresh
from tapegen.tape.tensors.variable import Variable

_OPERATORS: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    operator.pow: "**",
    np.matmul: "@",
    np.remainder: "%",
    np.floor_divide: "//",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
}


@dataclass(frozen=True, eq=False)
class Source:
    """The records of a tape between sources and targets, as generated code.

    Printing it gives the forward and the backward sweep.

    Attributes
    ----------
    text : str
        The records as a Python function of the sources and of the constants that they use.
    constants : dict
        The values of these constants by name.
    gone : tuple of str
        Those whose values the tape did not save, only their shapes and dtypes (a persistent tape saves all).
    """

    text: str
    constants: dict[str, Any]
    gone: tuple[str, ...]
    _function: Differentiable
    _sources: Any
    _values: tuple[Any, ...]

    @cached_property
    def _inspection(self) -> Inspection:
        return self._function.inspect(*self._values, *self.constants.values())

    @property
    def forward(self) -> str:
        """The forward sweep: the results, and the values saved for the backward sweep."""
        return self._inspection.forward

    @property
    def backward(self) -> str:
        """The backward sweep: from cotangents of the results to those of the sources."""
        return self._inspection.backward

    def __str__(self) -> str:
        return f"{self.forward}\n\n{self.backward}"

    def run(self) -> Any:
        """Execute both sweeps on the recorded values: the gradients, in the structure of the sources.

        Raises
        ------
        BadArgument
            If the tape did not save all constants.
        """
        if self.gone:
            raise BadArgument(
                f"the tape did not keep the values of {', '.join(self.gone)}, which no derivative reads.",
                "Use a persistent tape, which keeps everything.",
            )
        value, pullback = self._function.vjp(*self._values, *self.constants.values())
        ones = pytree.mapped(value, lambda leaf: np.ones(np.shape(leaf), np.asarray(leaf).dtype)[()])
        return pytree.refilled(self._sources, [fresh(np.asarray(bar)) for bar in pullback(ones)])


def source_of(records: Iterable[Record], targets: list[Traced], target: Any, sources: Any) -> Source:
    """The program that leads from the sources to the targets.

    Raises
    ------
    NotDifferentiable
        If it contains a call that cannot be expressed as source.
    """
    found = list(pytree.leaves(sources))
    writer = _Writer(found)
    needed = {item._id for item in targets}
    kept: list[Record] = []
    given = {item._id for item in found}
    for record in reversed(list(records)):
        if needed.isdisjoint(record.out_ids) or given & set(record.out_ids):
            continue
        kept.append(record)
        needed |= {number for *_, number, _ in record.inputs}
    for record in reversed(kept):
        writer.write(record)
    results = [writer.name_of(item) for item in targets]
    parameters = [*writer.parameters, *writer.constants]
    text = f"def recorded({', '.join(parameters)}):\n"
    text += "".join(f"    {line}\n" for line in writer.lines)
    text += f"    return {', '.join(results)}{',' if len(results) == 1 and isinstance(target, tuple | list) else ''}\n"
    options = Options(wrt=tuple(range(len(writer.parameters))), backend="python")
    function = Differentiable(function_from_text(text, {"np": np, **writer.functions}), options)
    return Source(
        text, writer.constants, tuple(writer.gone), function, sources, tuple(_plain(item._value) for item in found)
    )


class _Writer:
    """Statements for records; every tensor is a variable."""

    def __init__(self, sources: list[Traced]) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.gone: list[str] = []
        self.functions: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.taken = {"np", "recorded"}
        self.parameters = [self._named(item) for item in sources]

    def _named(self, item: Traced) -> str:
        if item._id in self.names:
            raise BadArgument("a source is given twice.", "Give each source once.")
        wanted = item.name.partition(":")[0] if isinstance(item, Variable) else "x"
        if not wanted.isidentifier() or keyword.iskeyword(wanted) or wanted == "Variable":
            wanted = "x"
        self.names[item._id] = self._fresh(wanted)
        return self.names[item._id]

    def _fresh(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def name_of(self, item: Traced) -> str:
        """The name of a target."""
        if item._id not in self.names:
            self.names[item._id] = self._constant(item._value, item._id)
        return self.names[item._id]

    def write(self, record: Record) -> None:
        """One call."""
        operation = record.operation
        if isinstance(operation, CompiledFallback):
            self._assign(record, self._form(operation.form))
            return
        if isinstance(operation, Closure):
            raise NotDifferentiable(
                f"'{operation.name}' has a custom gradient, which has no source.",
                "Print the source of what comes before or after it.",
            )
        args = [self._operand(value, number) for value, number in zip(record.args, record.ids, strict=True)]
        self._assign(record, self._call(record, operation.func, args))

    def _assign(self, record: Record, text: str) -> None:
        targets = []
        for number in record.out_ids:
            name = self._fresh("t") if number else "_"
            targets.append(name)
            if number:
                self.names[number] = name
        self.lines.append(f"{', '.join(targets)} = {text}")

    def _form(self, form: Form) -> str:
        """A call that no rule covers."""
        operands = [self._operand(*pair) for pair in zip(form.values, form.ids, strict=True)]
        names = [self._function(item) for item in form.objects]
        return written(form.pieces, operands, names)

    def _call(self, record: Record, func: Callable[..., Any], args: list[str]) -> str:
        if record.operation is GETITEM:
            return f"{args[0]}[{_index(record.args[1], self)}]"
        if record.operation is ASTYPE:
            return f"{args[0]}.astype(np.{record.args[1].name})"
        if func in _OPERATORS and len(args) == 2 and not record.kwargs:
            return f"{args[0]} {_OPERATORS[func]} {args[1]}"
        if func is np.negative:
            return f"-{args[0]}"
        options = [f"{name}={self._operand(value, 0)}" for name, value in record.kwargs.items()]
        return f"{self._function(func)}({', '.join([*args, *options])})"

    def _function(self, func: Callable[..., Any]) -> str:
        name = getattr(func, "__name__", "function")
        if getattr(np, name, None) is func:
            return f"np.{name}"
        if getattr(np.linalg, name, None) is func:
            return f"np.linalg.{name}"
        if self.functions.setdefault(name, func) is not func:
            raise NotDifferentiable(f"two functions are called '{name}'.", "Rename one of them.")
        return name

    def _operand(self, value: Any, number: Any) -> str:
        if type(number) is tuple:
            items = [self._operand(v, n) for v, n in zip(value, number, strict=True)]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if number in self.names:
            return self.names[number]
        if isinstance(value, np.ndarray | np.floating | np.complexfloating):
            return self._constant(value, number)
        if isinstance(value, list | tuple):
            items = [self._operand(v, 0) for v in value]
            inner = ", ".join(items)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(items) == 1 else ''})"
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{value.__name__}"
        if isinstance(value, np.dtype):
            return f"np.{value.name}"
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return f"float('{value}')"
        return repr(value)

    def _constant(self, value: Any, number: int) -> str:
        name = self._fresh("c")
        if is_stand_in(value):
            self.gone.append(name)
            value = np.zeros(value.shape, value.dtype)
        self.constants[name] = _plain(value)
        if number:
            self.names[number] = name
        return name


def _index(index: Any, writer: _Writer) -> str:
    """The text between the brackets."""
    if isinstance(index, tuple):
        return ", ".join(_index(item, writer) for item in index) + ("," if len(index) == 1 else "")
    if isinstance(index, slice):
        parts = ["" if part is None else str(part) for part in (index.start, index.stop)]
        return ":".join(parts) + ("" if index.step is None else f":{index.step}")
    if index is Ellipsis:
        return "..."
    if isinstance(index, np.ndarray):
        return writer._constant(index, 0)
    return repr(index if index is None else int(index))


def _plain(value: Any) -> Any:
    """An array, or a scalar where there are no axes."""
    return value if value.ndim else value[()]
