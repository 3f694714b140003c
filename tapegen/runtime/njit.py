"""Derivatives inside the user's own compiled code: `f.njit`, `f.njit.value_and_grad`, `f.njit.grad`."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tapegen.backend.numba.build import DISABLED, build_numba, compiles
from tapegen.backend.numba.overloads import Implementation, alternatives, dispatcher, is_read_only, overlap
from tapegen.errors import BadArgument, BuildError, NoCompiledForm, NotDifferentiable, frames_of_tapegen
from tapegen.frontend.values.assumptions import Guard, guards_hold
from tapegen.frontend.values.pytree import Abstract, Leaf, Slot, StaticValue, Struct, abstract_of
from tapegen.ir.nodes import Return, Var
from tapegen.ir.passes import without_passes
from tapegen.ir.types import Array
from tapegen.pipeline.artifacts.generated_text import compiled_source
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.pipeline.options import Options
from tapegen.runtime.specialization import SpecializationCache

_NUMBERS = (bool, int, float, complex, str)

_MOST = 4
"""Maximal number of programs of one signature: booleans and single axes, which may have size 1, multiply them."""


class Native:
    """The primal as a numba dispatcher, with the attributes `value_and_grad` and `grad`.

    Compiled code keeps the captured numbers that it was compiled with, as numba's own functions do.  Where one of them
    has changed, new dispatchers take the place of the old ones for whoever asks then; code that holds the old ones
    does not change, so a warning says once what it keeps.
    """

    def __init__(self, owner: SpecializationCache, options: Options) -> None:
        self._owner, self._options = owner, options
        self._guards: list[Guard] = []
        self._made: Any = None

    def dispatcher(self) -> Any:
        """The dispatchers for the present values of captured variables."""
        if self._made is None or not guards_hold(self._guards):
            self._guards = []
            self._made = self._dispatchers(self._guards)
        return self._made

    def _dispatchers(self, guards: list[Guard]) -> Any:
        if not compiles():  # nothing would replace these names by derivatives
            raise BuildError(DISABLED, "Unset it, or call the function itself and its derivatives without njit.")
        names = ("value", "value_and_grad", "grad")
        kinds = {name: _dispatcher(self._owner, self._options, name, guards) for name in names}
        primal = kinds.pop("value")
        primal.variants = kinds
        for name, made in kinds.items():
            setattr(primal, name, made)
        return primal


def _dispatcher(owner: SpecializationCache, options: Options, kind: str, guards: list[Guard]) -> Any:
    if owner.bound_args or owner.bound_kwargs:
        raise BadArgument(
            f"{owner.function.__qualname__} has arguments that are bound already, which compiled code cannot pass.",
            "Use a plain function of numbers and arrays.",
        )
    for name, parameter in owner.signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadArgument(
                f"the parameter '{name}' of {owner.function.__qualname__} cannot be passed by position, as compiled "
                "code passes it.",
                "Give the function parameters that can be passed by position.",
            )

    def implement(types: Mapping[str, Any]) -> Implementation:
        return _Implementation(owner, options, kind, types, guards).text()

    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in owner.signature.parameters.values()
    ]
    name = owner.function.__name__ if owner.function.__name__.isidentifier() else "function"
    return dispatcher(f"{name}_{kind}", inspect.Signature(parameters), implement)


class _Implementation:
    """The code of one dispatcher for one combination of argument types."""

    def __init__(
        self,
        owner: SpecializationCache,
        options: Options,
        kind: str,
        types: Mapping[str, Any],
        guards: list[Guard],
    ) -> None:
        self.owner, self.options, self.kind, self.types, self.guards = owner, options, kind, types, guards
        self.names: dict[str, Any] = {}

    def text(self) -> Implementation:
        """The body and the names that it uses."""
        choices = [alternatives(type_, name) for name, type_ in self.types.items()]
        lines: list[str] = []
        refused = "no other values are possible"
        if sum(getattr(pairs[0][1], "ndim", 0) for pairs in choices) > 1:  # one program for each would be too many
            choices = [[pair for pair in pairs if not _has_unit_axis(pair[1])] for pairs in choices]
            refused = "an axis of size 1 next to others is not served inside compiled code; call the function itself"
        found = list(itertools.islice(itertools.product(*choices), _MOST + 1))
        if len(found) > _MOST:
            raise BadArgument("there are too many combinations of booleans.", "Make them defaults of the function.")
        for k, chosen in enumerate(found):
            conditions = [condition for condition, _ in chosen if condition]
            values = {name: value for name, (_, value) in zip(self.types, chosen, strict=True)}
            block = self._call(k, values)
            if conditions:
                lines.append(f"    if {' and '.join(conditions)}:")
                block = [f"    {line}" for line in block]
            lines += block
        if any(condition for chosen in found for condition, _ in chosen):
            lines.append(f"    raise ValueError({refused!r})")
        return "\n".join(lines) + "\n", self.names

    def _call(self, k: int, values: Mapping[str, Any]) -> list[str]:
        """Call the program for one alternative, and assemble its results.

        numba's code that calls it outlives `tg.debug`, so all optimizations run for it.
        """
        with without_passes(frozenset()):
            return self._call_optimized(k, values)

    def _call_optimized(self, k: int, values: Mapping[str, Any]) -> list[str]:
        abstracts = {name: _without_samples(abstract_of(value, name)) for name, value in values.items()}
        program = Program(self.owner.lower_alone(abstracts, self.options), self.owner, abstracts, self.options)
        self._check(program)
        self._note_captures(program)
        params = program.lowered.params
        arguments = [param.argument for param in params]
        last = program.lowered.function.body[-1]
        assert isinstance(last, Return)
        count = len(last.values)
        wrt: tuple[Var, ...] = ()
        form: Form = "primal"
        if self.kind != "value":
            form, wrt = "joint", program.wrt_vars()
            seeds = program.outline(form, general=True).seeds
            if any(isinstance(seed.type, Array) for seed in seeds):
                raise BadArgument("the function returns an array without axes.", "Return a number: value[()].")
            arguments += ["1.0"] * len(seeds)
        try:
            source = compiled_source(program, form, general=True)
        except NoCompiledForm as missing:
            raise BuildError(missing.reason, "Call it outside of compiled code.", missing.span) from None
        source = replace(source, only_reads=False)  # numba looks for code of the very types
        self.names[f"program_{k}"] = build_numba(source, from_start=True, kept=self.options.cache)
        lines = self._alias_checks(program)
        results = [f"results[{n}]" for n in range(count + len(wrt))]
        if len(results) == 1:
            results = ["results"]
        value = _value_text(program.lowered.output, results[:count])
        gradient = self._gradient_text(program, results[count:])
        result = {"value": value, "value_and_grad": f"({value}, {gradient})", "grad": gradient}[self.kind]
        if self.kind == "grad" and self.options.has_aux:
            assert isinstance(program.lowered.output, Struct)
            result = f"({gradient}, {_value_text(program.lowered.output.children[1], results[:count])})"
        call = f"program_{k}({', '.join(arguments)})"
        return [*lines, f"    results = {call}", f"    return {result}"]

    def _check(self, program: Program) -> None:
        for param in program.lowered.params:
            if param.getter is not None:
                raise NotDifferentiable(
                    f"{self.owner.function.__qualname__} reads '{param.argument}' from outside, whose value "
                    "compiled code would keep for ever.",
                    "Pass it as an argument.",
                    program.lowered.function.origin,
                )
            if param.var.name in program.mutated and is_read_only(self.types[param.argument]):
                raise BadArgument(f"'{param.argument}' is written, and it is read-only here.", "Pass a copy.")

    def _note_captures(self, program: Program) -> None:
        """Note the captured values that code keeps, and warn of numbers whose names are not those of constants."""
        self.guards += program.lowered.guards
        name = self.owner.function.__name__
        for guard in program.lowered.guards:
            if guard.is_variable and isinstance(guard.value, _NUMBERS) and not guard.name.isupper():
                warnings.warn(
                    f"{name}.njit keeps {guard.name} = {guard.value!r}, which {name} reads from outside: code that is "
                    "compiled with it does not see later changes. Pass it as an argument, or write its name in upper "
                    "case if it is a constant.",
                    UserWarning,
                    stacklevel=frames_of_tapegen(),
                )

    def _alias_checks(self, program: Program) -> list[str]:
        """The checks that written arguments share no memory with other arrays."""
        lowered = program.lowered
        arrays = [param for param in lowered.params if isinstance(param.var.type, Array)]
        lines = []
        for written in arrays:
            if written.var.name not in program.mutated:
                continue
            for other in arrays:
                if other is not written:
                    self.names["overlap"] = overlap
                    text = f"'{written.argument}' is written and shares memory with '{other.argument}'"
                    lines.append(f"    if overlap({written.argument}, {other.argument}):")
                    lines.append(f"        raise ValueError({text!r})")
        return lines

    def _gradient_text(self, program: Program, found: list[str]) -> str:
        if self.kind == "value":
            return ""
        parts = [_value_text(template, found) for template in program.gradient_templates]
        return parts[0] if isinstance(self.options.wrt, int | str) else _tuple_text(parts)


def _has_unit_axis(value: Any) -> bool:
    return 1 in getattr(value, "shape", ())


def _without_samples(abstract: Abstract) -> Abstract:
    """Examples of arguments say nothing about their values."""
    return Leaf(abstract.expr) if isinstance(abstract, Leaf) else abstract


def _value_text(output: Any, results: list[str]) -> str:
    """The result as the user's function returns it."""
    if isinstance(output, Slot):
        return results[output.index]
    if isinstance(output, StaticValue) and isinstance(output.value, int | float | str | None):
        return repr(output.value)
    if isinstance(output, Struct) and output.cls is tuple:
        return _tuple_text([_value_text(child, results) for child in output.children])
    raise BadArgument("the result is not made of numbers, arrays and tuples.", "Return numbers, arrays or tuples.")


def _tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"


__all__ = ["Native"]
