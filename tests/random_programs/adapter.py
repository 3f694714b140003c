"""The one place that calls tapegen: a program's derivatives through the public interface, and its generated texts."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tapegen
from tapegen.errors import AliasError, BuildError, InternalError, TapegenError
from tapegen.ir import traversal
from tapegen.ir.nodes import Call
from tapegen.ir.printer import function_text
from tapegen.pipeline import compile
from tapegen.pipeline.passes.derivation import Stages
from tests.random_programs.field import FieldMath, FieldNumpy
from tests.random_programs.program import Program, run_text
from tests.random_programs.residues import OutsideField, Residue, lift

__all__ = ["AliasError", "BuildError", "Derivatives", "InternalError", "TapegenError"]


class Derivatives:
    """What tapegen makes of one program."""

    def __init__(self, program: Program, backend: str = "python") -> None:
        self.program = program
        self.function = tapegen.differentiable(program.load(), wrt=program.wrt, backend=backend)

    def call(self, args: tuple[Any, ...]) -> Any:
        """The primal."""
        return self.function(*args)

    def value_and_grad(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Of a program that returns one number."""
        return self.function.value_and_grad(*args)

    def vjp(self, args: tuple[Any, ...]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        """Of any program."""
        return self.function.vjp(*args)

    def jvp(self, args: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Value and tangent; a tangent for each entry of `wrt`."""
        given: list[Any] = [None] * len(args)
        for k, tangent in zip(self.program.wrt, tangents, strict=True):
            given[k] = tangent
        return self.function.jvp(args, given)

    def over_field(self, weights: Sequence[Any]) -> list[tuple[list[Any], list[Any]]]:
        """Run the generated texts on residues, unchanged.

        Parameters
        ----------
        weights : sequence
            A cotangent for each floating result.

        Returns
        -------
        list of (results, gradients)
            Of the joint text and of the split pair.
        """
        inspection = self.function.inspect(*self.program.arguments())
        joint = Text(str(inspection.joint))
        given = self._given()
        seeds = joint.seeds(given)
        if len(seeds) != len(weights):
            raise OutsideField("results without a cotangent")
        made = joint(given, weights)
        count = len(made) - len(self.program.wrt)
        found = [(made[:count], made[count:])]
        forward, backward = Text(str(inspection.forward)), Text(str(inspection.backward))
        given = self._given()
        kept = forward(given, ())
        values = copy.deepcopy(kept[:count])
        for name in forward.parameters:  # the pullback must not read what belongs to the caller
            if isinstance(given[name], np.ndarray) and given[name].flags.writeable:
                given[name][...] = lift(7.0) if given[name].dtype == object else 0
        gradients = backward.call([*kept[count:], *weights])
        arrays = [x for x in (*gradients, *weights) if isinstance(x, np.ndarray)]
        if any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            raise AssertionError("a gradient shares memory with another one or with a cotangent")
        found.append((values, gradients))
        return found

    def _given(self) -> dict[str, Any]:
        """Values on residues for the parameters of the user's function and for its globals."""
        numpy = FieldNumpy()
        names = {"__float__": lift, "float": lift}
        f = self.program.load_with(numpy, FieldMath(), names)
        given = {name: value for name, value in f.__globals__.items() if isinstance(value, Residue | np.ndarray)}
        parameters = f.__code__.co_varnames[: f.__code__.co_argcount]
        for name, value in zip(parameters, self.program.arguments(numpy), strict=True):
            given[name] = lift(value) if isinstance(value, float) else value
        return given


class Text:
    """A generated text, ready to run on residues."""

    def __init__(self, text: str) -> None:
        definition = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)][-1]
        self.parameters = [arg.arg for arg in definition.args.args]
        namespace = run_text(text, FieldNumpy(), FieldMath(), {"__float__": lift, "float": lift})
        self.function = namespace[definition.name]

    def seeds(self, given: dict[str, Any]) -> list[str]:
        """The parameters that are cotangents of results."""
        return [name for name in self.parameters if name not in given]

    def __call__(self, given: dict[str, Any], weights: Sequence[Any]) -> list[Any]:
        rest = iter(weights)
        return self.call([given[name] if name in given else next(rest) for name in self.parameters])

    def call(self, values: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            made = self.function(*values)
        if made is None:  # no results
            return []
        return list(made) if isinstance(made, tuple) else [made]


class Derivation:
    """A program lowered once and differentiated any number of times: what a change of tapegen does to its text."""

    def __init__(self, program: Program) -> None:
        function = tapegen.differentiable(program.load(), wrt=program.wrt, backend="python")
        self.program = function._specialise(program.arguments(), {}).program

    def functions(self) -> set[Any]:
        """What the program calls, once formulas are written out."""
        stages = self._stages()
        programs = (stages.lowered, stages.expanded)
        headers = (h for p in programs for stmt in traversal.statements(p.body) for h in stmt.headers)
        return {part.func for h in headers for part in traversal.subexpressions(h) if isinstance(part, Call)}

    def text(self) -> str:
        """The joint form and what the split form keeps, as text of the IR; or the error."""
        try:
            stages = self._stages()
            return function_text(stages.joint, types=True) + function_text(stages.record, types=True)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _stages(self) -> Stages:
        program = self.program
        results = program.selection.active_results(scalar=False)
        return compile.derive_reverse(program.lowered.function, program.wrt_vars(), results, program.user_names)
