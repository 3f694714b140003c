"""Errors of calls: what an exception of generated code becomes where plain Python raises none."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from traceback import clear_frames
from typing import Any

import numpy as np

from tapegen.backend.numba import memory_limit
from tapegen.errors import BadArgument, Span, TapegenError, TapeMemoryError
from tapegen.frontend.calls.custom_rules import own_rule
from tapegen.frontend.source.parse import span_of_parameter
from tapegen.ir import traversal
from tapegen.ir.printer import callable_text
from tapegen.pipeline.artifacts.differentiated_arguments import Owner
from tapegen.pipeline.artifacts.error_locations import growing_loops, location, loop_of_tape
from tapegen.pipeline.artifacts.program import CALLS, Form, Program
from tapegen.pipeline.fault_boundary import internal_error

_OF_WRONG_TEXT = (NameError, AttributeError, AssertionError)
"""An error that correct generated code cannot raise where plain Python raises nothing."""


@dataclass(frozen=True, slots=True)
class CallErrors:
    """The errors of one program of a function.

    Attributes
    ----------
    program : Program
        The program.
    owner : Owner
        The function.
    """

    program: Program
    owner: Owner

    def refusal(
        self, error: Exception, form: Form, loop: Span | None = None, program: Program | None = None
    ) -> TapegenError:
        """An error of generated code where plain Python has a value, or of the tape of a loop."""
        span, backward = location((program or self.program), error)
        whole = self.program.lowered.function.origin
        name = self.owner.function.__qualname__
        if isinstance(error, MemoryError):
            return TapeMemoryError(
                f"what the derivative of {name} records does not fit into memory: {str(error).rstrip('.')}.",
                "Use shorter loops or smaller arrays, or use jvp, which records nothing.",
                loop or span or whole,
            )
        if isinstance(error, _OF_WRONG_TEXT) and not self.own_rules():
            return internal_error(error, "running", self.program.subject(CALLS[form]), span)
        if not backward:
            return self.cannot_go_on(error, span)
        where = f"of line {span.line}" if span is not None else f"of {name}"
        own = self.own_rules()
        if own and not isinstance(error, ArithmeticError):
            advice = f"There is a value here. The fault may be in a rule of yours: that of {own}."
        else:
            advice = "There is a value here, but no finite derivative: pass other numbers, or write this differently."
        return BadArgument(f"in the gradient {where}: {type(error).__name__}: {error}.", advice, span or whole)

    def cannot_go_on(self, error: Exception, span: Span | None = None) -> BadArgument:
        """The refusal of a value that plain Python has, where the program raises an error instead."""
        return BadArgument(
            f"the generated code of {self.owner.function.__qualname__} cannot continue here: {str(error).rstrip('.')}.",
            "Plain Python has a value here, without a derivative: pass other numbers, or write this differently.",
            span or self.program.lowered.function.origin,
        )

    def too_much(self, error: Exception, form: Form, program: Program) -> TapeMemoryError:
        """The call was stopped before it exhausted memory; plain Python does not run, since it may not end either."""
        name = self.owner.function.__qualname__
        made = loop_of_tape(program, error, form)
        loops = growing_loops(program, form, error) or ([made] if made is not None else [])
        place = location(program, error)[0]
        clear_frames(error.__traceback__)  # which hold the tapes
        if not loops:
            return TapeMemoryError(
                f"an array of {name} does not fit into memory: {error}.",
                "Take smaller arrays.",
                place or self.program.lowered.function.origin,
            )
        others = "".join(f", or of line {span.line}" for span in loops[1:])
        return TapeMemoryError(
            f"what the derivative of {name} records in the loop of line {loops[0].line}{others} does not fit into "
            f"memory: {error}{memory_limit.how_far()}.",
            "Check that the loop ends. Use fewer iterations or smaller arrays, or use jvp, which records nothing.",
            loops[0],
        )

    def own_rules(self) -> str:
        """The functions that the program calls and that have rules of the user."""
        called = {func for stmt in self.program.lowered.function.body for func in traversal.calls(stmt)}
        return ", ".join(sorted(callable_text(func) for func in called if own_rule(func) is not None))

    def unfit(self, error: TypeError, arguments: Mapping[str, Any]) -> BadArgument | None:
        """The error about an argument that is no number or array, if one is the reason of plain Python's error."""
        for name, value in arguments.items():
            if value is not None and not isinstance(value, (str, bytes, set, frozenset)):
                continue
            kind = type(value).__name__
            kinds = (f"'{kind}'", repr(np.asarray(value).dtype))  # the name in Python and in NumPy
            if name in self.program.wrt_names or any(each in str(error) for each in kinds):
                what = "None" if value is None else f"a {kind}"
                return BadArgument(
                    f"'{name}' is {what}, where a number or an array is needed ({type(error).__name__}: {error}).",
                    "Pass a number or an array.",
                    self.parameter(name),
                )
        return None

    def parameter(self, name: str) -> Span | None:
        """The user's location of an argument of this name."""
        return span_of_parameter(self.owner.function, name) or self.program.lowered.function.origin


def user_line(error: BaseException, function: Any) -> str | None:
    """`file:line: text` of the innermost frame that belongs to the user's function."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == function.__code__.co_filename:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    if found is None:
        return None
    file = function.__code__.co_filename
    return f"{file}:{found}: {linecache.getline(file, found).strip()}"
