"""Nested derivatives, inside differentiated functions: derived programs as Python functions that are lowered again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.analysis.side_effects import effects_of
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.errors import BadArgument
from tapegen.frontend.calls.random_replay import refuse_unseeded
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import BACKWARD, NameSupply
from tapegen.ir.nodes import Call, Comment, Effect, Function, Return, Stmt, Var
from tapegen.ir.protocols import Kind, Mode, marks
from tapegen.ir.types import Array, RandomGenerator, Scalar, Type, is_complex
from tapegen.rules import implicit
from tapegen.rules.registry import rule_of

__all__ = ["PIPELINE"]

_OF_RULES: dict[Kind, Callable[..., Any]] = {
    "grad": implicit.grad,
    "vjp": implicit.vjp,
    "jvp": implicit.jvp,
    "jacobian": implicit.jacobian,
}
"""What the bodies of rules call where they differentiate functions that are passed to solvers."""

_MOST_TEXTS = 512

_AT_ONCE = 32  # directions of one sweep: few, so that their memory stays small, but enough to share the primal


class _Pipeline:
    """See `tapegen.ir.protocols.Pipeline`; one source for one program."""

    def __init__(self) -> None:
        self._texts: OrderedDict[object, FunctionType] = OrderedDict()

    def primal(self, function: Function, modules: Mapping[str, str]) -> FunctionType:
        from tapegen.pipeline import compile

        return self._built(compile.primal(function, frozenset()), modules)

    def reverse(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], modules: Mapping[str, str]
    ) -> FunctionType:
        from tapegen.pipeline import compile

        joint = compile.derive_reverse(function, wrt, active, frozenset(), differentiated_again=True).joint
        return self._built(replace(joint, body=tuple(map(_as_statement, joint.body))), modules)

    def forward(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], modules: Mapping[str, str]
    ) -> FunctionType:
        from tapegen.pipeline import compile

        return self._built(
            compile.derive_forward(function, wrt, active, frozenset(), differentiated_again=True), modules
        )

    def jacobian(
        self,
        function: Function,
        wrt: tuple[Var, ...],
        active: tuple[bool, ...],
        modules: Mapping[str, str],
        mode: Mode | None,
        *,
        holomorphic: bool,
        kept: Sequence[int] = (),
    ) -> FunctionType:
        from tapegen.pipeline import compile

        refuse_unseeded(function)
        last = function.body[-1]
        assert isinstance(last, Return)
        mode = mode_of_complex(function, wrt, active, mode, holomorphic=holomorphic)
        if mode is None:
            results = [value.type for value, is_active in zip(last.values, active, strict=True) if is_active]
            mode = "forward" if any(map(_rank, results)) or not any(_rank(var.type) for var in wrt) else "reverse"
            mode = mode if goes_forward(function) else "reverse"
        primal = self.primal(function, modules)
        count = len(active)
        several: dict[Var, bool] = {}
        if mode == "forward":
            derived = []
            for var in wrt:
                found = (
                    compile.derive_vector_forward(function, (var,), active, frozenset()) if _rank(var.type) else None
                )
                if found is not None:
                    several[var] = found.last
                    derived.append(self._built(found.function, modules))
                else:
                    derived.append(self.forward(function, (var,), active, modules))
        else:
            single = [tuple(k == j for k in range(count)) for j in range(count) if active[j]]
            derived = [self.reverse(function, wrt, only, modules) for only in single]
        return self._driver(_Driver(function, wrt, active, several).text(mode, kept), [primal, *derived])

    def batch(self, function: Function, axes: Sequence[int | None], modules: Mapping[str, str]) -> FunctionType:
        from tapegen.pipeline.batch_loops import batch_loop

        return self._driver(batch_loop(function, axes), [self.primal(function, modules)])

    def _built(self, function: Function, modules: Mapping[str, str]) -> FunctionType:
        from tapegen.pipeline import compile

        routines = compile.routines(function, frozenset())
        source = emit(function, modules=modules, routines=routines, marks=True)
        key = (source.text, tuple((name, id(value)) for name, value in source.namespace.items()))
        if key not in self._texts:
            built = build_python(source)
            assert isinstance(built, FunctionType)
            self._keep(key, built)
        return self._texts[key]

    def _keep(self, key: object, made: FunctionType) -> None:
        """Generated sources refer to functions of the user, so the oldest ones are evicted."""
        self._texts[key] = made
        while len(self._texts) > _MOST_TEXTS:
            self._texts.popitem(last=False)

    def _driver(self, text: str, functions: list[FunctionType]) -> FunctionType:
        key = (text, tuple(map(id, functions)))
        if key not in self._texts:
            given = {f"function_{k}": function for k, function in enumerate(functions)}
            known = {"np": np, "copy_generator": intrinsics.copy_generator, "replay_draws": intrinsics.replay_draws}
            self._keep(key, function_from_text(text, {**known, **given}))
        return self._texts[key]


def goes_forward(function: Function) -> bool:
    """Whether each rule that a program may need has a pushforward; rules of users may have none."""
    rules = [rule_of(func) for stmt in function.body for func in traversal.calls(stmt)]
    return all(rule is None or rule.kind != "pullback" or rule.pushforward is not None for rule in rules)


def mode_of_complex(
    function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], mode: Mode | None, *, holomorphic: bool
) -> Mode | None:
    """The mode in which a complex Jacobian is computed; for a real one, the requested mode.

    One product determines the derivative if the function is holomorphic, if its arguments are real (a tangent), or its
    results (a cotangent).

    Raises
    ------
    BadArgument
        If none of these holds, or not in the requested mode.
    """
    last = function.body[-1]
    assert isinstance(last, Return)
    given = [is_complex(var.type) for var in wrt]
    made = [is_complex(value.type) for value, is_active in zip(last.values, active, strict=True) if is_active]
    if holomorphic:
        if not all(given) or not all(made):
            raise BadArgument("holomorphic=True is for complex arguments and results.", "Leave it out.")
        return mode
    if any(given) and any(made):
        raise BadArgument(
            "the Jacobian of complex results with respect to complex arguments is one number for each pair for "
            "holomorphic functions only.",
            "Set holomorphic=True if it is one; else take real and imaginary parts, or use jvp and vjp.",
            function.origin,
        )
    needed: Mode | None = "reverse" if any(given) else "forward" if any(made) else None
    if needed is not None and mode not in (None, needed):
        raise BadArgument(
            f"the Jacobian of {'real' if any(given) else 'complex'} results with respect to "
            f"{'complex' if any(given) else 'real'} arguments cannot be computed in mode {mode!r}.",
            f'Use mode="{needed}", or leave it out.',
            function.origin,
        )
    return needed or mode


def _as_statement(stmt: Stmt) -> Stmt:
    """The comment above a backward sweep as a statement, which is lowered again."""
    if not isinstance(stmt, Comment) or stmt.text != BACKWARD:
        return stmt
    return Effect(Call(intrinsics.backward_sweep, (), (), Scalar("float64")))


class _Driver:
    """The source of a function that computes Jacobians: one loop over the directions, around a derived program.

    It returns the requested results, then for each active one its derivative with respect to each parameter of
    `wrt`.
    """

    def __init__(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], several: Mapping[Var, bool]
    ) -> None:
        last = function.body[-1]
        assert isinstance(last, Return)
        self.function, self.wrt, self.several = function, wrt, several
        self.names = NameSupply(
            [*(param.name for param in function.params), "np", "copy_generator", "replay_draws", function.name]
        )
        self.results = [self.names.fresh("result") for _ in last.values]
        self.active = [(k, value.type) for k, value in enumerate(last.values) if active[k]]
        mutated = effects_of(function).mutated_params
        self.entry = {
            param.name: self.names.fresh(f"{param.name}_entry")
            for param in function.params
            if param.name in mutated and isinstance(param.type, Array)
        }
        self.drawn = {
            param.name: self.names.fresh(f"{param.name}_entry")
            for param in function.params
            if isinstance(param.type, RandomGenerator)
        }
        self.lines: list[str] = []

    def text(self, mode: Mode, kept: Sequence[int]) -> str:
        params = self._params()
        self.lines = [f"def {self.function.name}_jacobian({params}):"]
        for name, entry in self.entry.items():
            self._add(1, f"{entry} = {name}.copy()")
        for name, entry in self.drawn.items():
            self._add(1, f"{entry} = copy_generator({name})")
        self._add(1, f"{', '.join(self.results)}{' = ' * bool(self.results)}function_0({params})")
        made: dict[tuple[int, int], str] = {}
        if self.active:
            made = self._forward() if mode == "forward" else self._reverse()
        derivatives = [made[k, j] for k, _ in self.active for j in range(len(self.wrt))]
        self._add(1, f"return {', '.join([*(self.results[k] for k in kept), *derivatives])}")
        return "".join(line + "\n" for line in self.lines)

    def _params(self) -> str:
        return ", ".join(param.name for param in self.function.params)

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _run(self, depth: int, call: str) -> None:
        """A call of a derived program, with the same random draws as the program itself, on the arguments on entry."""
        for name, entry in self.entry.items():
            # the argument itself: a reshape that was a view may copy for a copy with another layout
            self._add(depth, f"{name}[...] = {entry}")
        for name, entry in self.drawn.items():
            self._add(depth, f"replay_draws({name}, {entry})")
        self._add(depth, call)

    def _forward(self) -> dict[tuple[int, int], str]:
        made: dict[tuple[int, int], str] = {}
        tangents = {k: self.names.fresh("tangent") for k, _ in self.active}
        unused = self.names.fresh("value")
        targets = ", ".join([unused] * len(self.results) + list(tangents.values()))
        for j, var in enumerate(self.wrt):
            source = self.entry.get(var.name, var.name)
            call = f"{targets} = function_{j + 1}({self._params()}, "
            if not _rank(var.type) and isinstance(var.type, Scalar):
                self._run(1, f"{call}{_one(var.type)})")
                for k, type_ in self.active:
                    made[k, j] = self.names.fresh("jacobian")
                    self._add(1, f"{made[k, j]} = {tangents[k]}{'.copy()' if isinstance(type_, Array) else ''}")
                continue
            for k, type_ in self.active:
                made[k, j] = self._table(k, type_, source, _dtype(type_))
            if var in self.several:
                self._blocks(var, source, call, {k: (type_, made[k, j], tangents[k]) for k, type_ in self.active})
                for k, type_ in self.active:
                    self._shaped(made, k, j, type_, source)
                continue
            index, dot = self.names.fresh("k"), self.names.fresh("direction")
            self._add(1, f"for {index} in range({source}.size):")
            self._add(2, f"{dot} = np.zeros({source}.size, dtype=np.{_dtype(var.type)})")
            self._add(2, f"{dot}[{index}] = 1.0")
            shaped = f"{dot}.reshape({_shape(source, var.type)})"
            in_columns = isinstance(var.type, Array) and var.type.layout == "F"
            self._run(2, f"{call}{f'np.asfortranarray({shaped})' if in_columns else shaped})")
            for k, type_ in self.active:
                row, value = (f":, {index}", f"{tangents[k]}.ravel()") if _is_array(type_) else (index, tangents[k])
                self._add(2, f"{made[k, j]}[{row}] = {value}")
            for k, type_ in self.active:
                self._shaped(made, k, j, type_, source)
        return made

    def _blocks(self, var: Var, source: str, call: str, results: Mapping[int, tuple[Type, str, str]]) -> None:
        """Columns of Jacobians, several at once.  `results` are types, Jacobians and tangents, by position."""
        last = self.several[var]
        start, width, k, dot = (self.names.fresh(base) for base in ("start", "width", "k", "direction"))
        extents = [f"{source}.shape[{axis}]" for axis in range(_rank(var.type))]
        extents.insert(len(extents) if last else 0, width)
        sizes = f"{source}.size, {width}" if last else f"{width}, {source}.size"
        self._add(1, f"for {start} in range(0, {source}.size, {_AT_ONCE}):")
        self._add(2, f"{width} = min({_AT_ONCE}, {source}.size - {start})")
        self._add(2, f"{dot} = np.zeros(({sizes}), dtype=np.{_dtype(var.type)})")
        self._add(2, f"for {k} in range({width}):")
        self._add(3, f"{dot}[{f'{start} + {k}, {k}' if last else f'{k}, {start} + {k}'}] = 1.0")
        self._run(2, f"{call}{dot}.reshape(({', '.join(extents)})))")
        for number, (type_, table, tangent) in results.items():
            columns = f"{start} : {start} + {width}"
            if not _is_array(type_):
                self._add(2, f"{table}[{columns}] = {tangent}")
                continue
            size = f"{self.results[number]}.size"
            value = f"{tangent}.reshape(({size}, {width}))" if last else f"{tangent}.reshape(({width}, {size})).T"
            self._add(2, f"{table}[:, {columns}] = {value}")

    def _reverse(self) -> dict[tuple[int, int], str]:
        made: dict[tuple[int, int], str] = {}
        unused = self.names.fresh("value")
        for n, (k, type_) in enumerate(self.active):
            bars = [self.names.fresh(f"{var.name}_bar") for var in self.wrt]
            targets = ", ".join([unused] * len(self.results) + bars)
            call = f"{targets} = function_{n + 1}({self._params()}, "
            if not _is_array(type_):
                self._run(1, f"{call}{_one(type_)})")
                made.update({(k, j): bar for j, bar in enumerate(bars)})
                continue
            sources = [self.entry.get(var.name, var.name) for var in self.wrt]
            for j, var in enumerate(self.wrt):
                numbers = _dtype(var.type if is_complex(var.type) else type_)
                made[k, j] = self._table(k, type_, sources[j] if _is_array(var.type) else "", numbers)
            index, bar = self.names.fresh("k"), self.names.fresh("direction")
            result = self.results[k]
            self._add(1, f"for {index} in range({result}.size):")
            self._add(2, f"{bar} = np.zeros({result}.size, dtype=np.{_dtype(type_)})")
            self._add(2, f"{bar}[{index}] = 1.0")
            self._run(2, f"{call}{bar}.reshape({_shape(result, type_)}))")
            for j, var in enumerate(self.wrt):
                row, value = (f"{index}, :", f"{bars[j]}.ravel()") if _is_array(var.type) else (index, bars[j])
                self._add(2, f"{made[k, j]}[{row}] = {value}")
            for j, var in enumerate(self.wrt):
                if _is_array(var.type):
                    self._shaped(made, k, j, type_, sources[j])
                elif _rank(type_) != 1:
                    self._shaped(made, k, j, type_, "")
        return made

    def _table(self, k: int, type_: Type, source: str, dtype: str) -> str:
        """Emit the array for the derivatives of a result with respect to a parameter (`source` is empty: a scalar)."""
        name = self.names.fresh("jacobian")
        sizes = [f"{self.results[k]}.size"] * _is_array(type_) + [f"{source}.size"] * bool(source)
        self._add(1, f"{name} = np.zeros(({', '.join(sizes)},), dtype=np.{dtype})")
        return name

    def _shaped(self, made: dict[tuple[int, int], str], k: int, j: int, type_: Type, source: str) -> None:
        """Give a table the axes of the result, then those of the parameter."""
        extents = [f"{self.results[k]}.shape[{axis}]" for axis in range(_rank(type_))]
        extents += [f"{source}.shape[{axis}]" for axis in range(_rank(self.wrt[j].type))] if source else []
        shaped = self.names.fresh("jacobian")
        self._add(1, f"{shaped} = {made[k, j]}.reshape(({', '.join(extents)}{',' * bool(extents)}))")
        made[k, j] = shaped


def _is_array(type_: Type) -> bool:
    return isinstance(type_, Array)


def _rank(type_: Type) -> int:
    return type_.rank if isinstance(type_, Array) else 0


def _dtype(type_: Type) -> str:
    assert isinstance(type_, Array | Scalar)
    return type_.dtype


def _shape(name: str, type_: Type) -> str:
    rank = _rank(type_)
    return f"({', '.join(f'{name}.shape[{axis}]' for axis in range(rank))}{',' * bool(rank)})"


def _one(type_: Type) -> str:
    return "1.0" if isinstance(type_, Scalar) and type_.python else f"np.{_dtype(type_)}(1.0)"


PIPELINE = _Pipeline()

for _kind, _func in _OF_RULES.items():
    marks(_kind, PIPELINE)(_func)
