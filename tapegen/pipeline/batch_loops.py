"""Batch loops: the source of a function that runs a program once for each instance of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapegen.analysis.scopes import scopes_of
from tapegen.analysis.shape_functions import Extent, Symbol
from tapegen.analysis.shape_inference import shapes_of
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Expr, Function, Return, Var
from tapegen.ir.types import Array, Scalar, Type

EMPTY = "the batch is empty, and the shapes of its results are not known"
DIFFER = "the instances of a batch have results of different shapes"


def batch_loop(function: Function, axes: Sequence[int | None]) -> str:
    """The source of a loop over instances; `function_0` is the text of the program.

    It takes the number of instances and the parameters of the program, the batched ones with one more axis, and returns
    each result of the program with the axis of the instances in front.

    Parameters
    ----------
    function : Function
        The program of one instance.
    axes : sequence
        For each parameter the axis of the instances; None if all instances share it.
    """
    return _BatchLoop(function, axes).text()


class _BatchLoop:
    def __init__(self, function: Function, axes: Sequence[int | None]) -> None:
        last = function.body[-1]
        assert isinstance(last, Return)
        self.function, self.axes = function, axes
        self.supply = NameSupply([*(param.name for param in function.params), "np", "function_0", function.name])
        self.types = [value.type for value in last.values]
        self.values = [self.supply.fresh("value") for _ in last.values]
        self.batches = [self.supply.fresh("batch") for _ in last.values]
        self.count = self.supply.fresh("count")
        self.instance = self.supply.fresh("instance")
        self.lines: list[str] = []

    def text(self) -> str:
        params = [param.name for param in self.function.params]
        self._add(0, f"def {self.function.name}_batch({', '.join([self.count, *params])}):")
        last = self.function.body[-1]
        assert isinstance(last, Return)
        shapes = self._shapes(last.values)
        if None in shapes:
            self._by_first()
        else:
            for batch, type_, shape in zip(self.batches, self.types, shapes, strict=True):
                self._allocate(batch, type_, shape or ())
            self._loop("0")
        if self.batches:
            self._add(1, f"return {', '.join(self.batches)}")
        return "".join(line + "\n" for line in self.lines)

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _shapes(self, results: Sequence[Expr]) -> list[tuple[str, ...] | None]:
        """The shapes of the results of an instance, where the shapes of the parameters determine them."""
        if not any(isinstance(type_, Array) and type_.rank for type_ in self.types):
            return [()] * len(results)
        known = shapes_of(self.function, scopes_of(self.function))
        symbols = {
            ("param", param.name, k): f"{param.name}.shape[{k if axis is None or k < axis else k + 1}]"
            for param, axis in zip(self.function.params, self.axes, strict=True)
            if isinstance(param.type, Array)
            for k in range(param.type.rank)
        }
        found: list[tuple[str, ...] | None] = []
        for value in results:
            extents = known.of(value) if isinstance(value, Var) and isinstance(value.type, Array) else ()
            texts = tuple(_extent_text(extent, symbols) for extent in extents)
            found.append(None if "" in texts else texts)
        return found

    def _allocate(self, batch: str, type_: Type, shape: Sequence[str]) -> None:
        assert isinstance(type_, Array | Scalar)
        dtype = "bool_" if type_.dtype == "bool" else type_.dtype
        self._add(1, f"{batch} = np.empty(({', '.join((self.count, *shape))},), dtype=np.{dtype})")

    def _by_first(self) -> None:
        """The first instance tells the shapes of the results; those of the others are compared with it."""
        self._add(1, f"if {self.count} == 0:")
        self._add(2, f"raise ValueError({EMPTY!r})")
        self._call(1, "0")
        for batch, value, type_ in zip(self.batches, self.values, self.types, strict=True):
            self._allocate(batch, type_, [f"{value}.shape[{k}]" for k in range(_rank(type_))])
            self._store(1, batch, "0", value)
        self._loop("1", compared=True)

    def _loop(self, start: str, *, compared: bool = False) -> None:
        self._add(1, f"for {self.instance} in range({start}, {self.count}):")
        self._call(2, self.instance)
        for batch, value, type_ in zip(self.batches, self.values, self.types, strict=True):
            if compared and _rank(type_):
                tests = [f"{value}.shape[{k}] != {batch}.shape[{k + 1}]" for k in range(_rank(type_))]
                self._add(2, f"if {' or '.join(tests)}:")
                self._add(3, f"raise ValueError({DIFFER!r})")
            self._store(2, batch, self.instance, value)

    def _call(self, depth: int, instance: str) -> None:
        given = [
            param.name if axis is None else f"{param.name}[{', '.join([*[':'] * axis, instance])}]"
            for param, axis in zip(self.function.params, self.axes, strict=True)
        ]
        targets = f"{', '.join(self.values)} = " if self.values else ""
        self._add(depth, f"{targets}function_0({', '.join(given)})")

    def _store(self, depth: int, batch: str, instance: str, value: str) -> None:
        self._add(depth, f"{batch}[{instance}] = {value}")


def _rank(type_: Type) -> int:
    return type_.rank if isinstance(type_, Array) else 0


def _extent_text(extent: Extent, symbols: Mapping[Symbol, str]) -> str:
    """An extent as an expression of the shapes of parameters; empty where it depends on other values."""
    constant, terms = extent
    if any(symbol not in symbols for symbol, _ in terms):
        return ""
    if not terms:
        return str(constant)
    parts = [symbols[symbol] if factor == 1 else f"{factor} * {symbols[symbol]}" for symbol, factor in terms]
    text = " + ".join([*parts, str(constant)] if constant else parts)
    return text if constant >= 0 and all(factor > 0 for _, factor in terms) else f"max(0, {text})"
