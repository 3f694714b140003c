"""Runs of programs: compiled, as Python, and with checks for NaN."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.backend.background.compile_queue import Job
from tapegen.backend.background.interruptible_source import Deferred, HandOver, until
from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.build import build_python, empty_list
from tapegen.backend.numba.early_exits.interrupts import is_of_signal_handler
from tapegen.errors import CacheWarning, CompileLimit, InternalError, NotFinite, TapegenError
from tapegen.ir.nodes import Function
from tapegen.ir.types import ListOf
from tapegen.pipeline.artifacts.error_locations import location_of_line
from tapegen.pipeline.artifacts.executables import executable, fall_back, internal, interpreted, is_general, key_of
from tapegen.pipeline.artifacts.generated_text import readable_text
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.pipeline.debug_nans import MadeNonFinite, run_with_nan_checks, watching, without_garbage
from tapegen.transform.simplify.real_domain import TURNS_COMPLEX


class Raised(Exception):
    """An exception of running generated code, as opposed to one of deriving or building it.

    Attributes
    ----------
    error : Exception
        The exception.
    interpreted : bool
        Whether Python ran the code.
    """

    def __init__(self, error: Exception, *, interpreted: bool) -> None:
        super().__init__(str(error))
        self.error, self.interpreted = error, interpreted


def run(
    program: Program, form: Form, arguments: list[Any], restore: Callable[[], None] = lambda: None
) -> tuple[Any, ...]:
    """Run one of the programs; build it first if necessary.

    Parameters
    ----------
    program : Program
        The specialization.
    form : Form
        Which program.
    arguments : list
        Its arguments.
    restore : callable
        Restores what the program writes into, where the call begins again.

    Raises
    ------
    Raised
        If the built program raises when it runs; errors of building are raised as they are.
    """
    if watching():
        return _watch(program, program.function(form), arguments)
    memory_limit.begin()
    with memory_limit.Within(program.options.budget):
        return _run(program, form, arguments, restore)


def _run(program: Program, form: Form, arguments: list[Any], restore: Callable[[], None]) -> tuple[Any, ...]:
    key, built = executable(program, form, arguments)
    given = arguments
    if form == "pullback" and not isinstance(built, FunctionType):
        given = list(arguments)
        for k, var in enumerate(program.outline("record").kept):
            if isinstance(var.type, ListOf) and not arguments[k]:
                given[k] = empty_list(var.type.item)
    try:
        return _called(built, given, real=not program.is_complex)
    except Deferred as deferred:
        try:
            return _run_meanwhile(program, program.function(form), arguments, deferred.job)
        except HandOver:
            restore()
        return run(program, form, arguments, restore)
    except (Raised, CompileLimit) as failed:
        error = failed.error if isinstance(failed, Raised) else failed
        if isinstance(error, NotImplementedError) and _is_refuted(program, form, key, error):
            restore()
            return run(program, form, arguments, restore)
        python = fall_back(program, key, form, error)
        if python is None:
            raise
    except InternalError as fault:  # compiling begins with the first call
        raise internal(program, fault, form) from fault.__cause__
    return _called(python, arguments, real=not program.is_complex)


def _is_refuted(program: Program, form: Form, key: str, error: Exception) -> bool:
    """Whether the code under a key has assumed what does not hold; from now on other code runs."""
    from tapegen.loops.legalize.short_axes import OTHER_SIZE
    from tapegen.loops.scalarize.broadcasting import BROADCASTS

    if str(error) == OTHER_SIZE and key == form:
        program.parts.sizes_vary.add(form)
        program.repeated.pop(form, None)
        return True
    if str(error) == BROADCASTS and not is_general(key):
        refute(program, form)
        return True
    return False


def rests_on_assumptions(program: Program, form: Form) -> bool:
    """Whether the compiled code that runs for a form assumes what is not known."""
    from tapegen.loops.legalize.short_axes import OTHER_SIZE
    from tapegen.loops.scalarize.broadcasting import BROADCASTS

    source = program.parts.compiled.get(key_of(program, form))
    return source is not None and program.speculates(form) and (BROADCASTS in source.text or OTHER_SIZE in source.text)


def refute(program: Program, form: Form) -> None:
    """From now on general code runs for a form."""
    program.parts.refuted.add(form)
    program.repeated.pop(form, None)


def interpret(program: Program, function: Function, arguments: list[Any]) -> tuple[Any, ...]:
    """Run the generated Python as it stands, whatever the backend is."""
    key = f"text of {function.name}"
    built = program.once(key, lambda: interpreted(program, function), "compiling")
    return _called(built, arguments, real=not program.is_complex)


def _run_meanwhile(program: Program, function: Function, arguments: list[Any], job: Job) -> tuple[Any, ...]:
    """Run the generated Python while a job compiles; HandOver where the call should begin again."""
    key = f"interruptible text of {function.name}"
    tapes = [tape.name for tape in function.tapes]
    built = program.once(
        key,
        lambda: build_python(readable_text(program, function), tapes, interruptible=program.is_repeatable),
        "compiling",
    )
    given = [list(item) if isinstance(item, list) else item for item in arguments]  # lists are used up
    with until(job):
        return _called(built, given, real=not program.is_complex)


def _watch(program: Program, function: Function, arguments: list[Any]) -> tuple[Any, ...]:
    source = readable_text(program, without_garbage(function))
    try:
        return _called(lambda *given: run_with_nan_checks(source, list(given)), arguments, real=not program.is_complex)
    except Raised as raised:
        if not isinstance(raised.error, MadeNonFinite):
            raise
        span, backward = location_of_line(source, raised.error.line)
        raise NotFinite(
            f"{'in the gradient: ' if backward else ''}{raised.error}.",
            "Look at the operands of this line; docs/conventions.md says what derivatives are at kinks and poles.",
            span or program.lowered.function.origin,
        ) from None


def _called(built: Callable[..., Any], arguments: list[Any], *, real: bool) -> tuple[Any, ...]:
    """The results of a built program; none of the `real` ones may have become complex."""
    interpreted = isinstance(built, FunctionType)
    try:
        if interpreted:
            with np.errstate(all="ignore"):
                values = built(*arguments)
        else:  # compiled code does not consult NumPy's error handling
            values = built(*arguments)
    except (TapegenError, CacheWarning, Deferred, HandOver):  # of compiling, at the first call
        raise
    except Exception as error:
        if is_of_signal_handler(error):
            raise
        raise Raised(error, interpreted=interpreted) from error
    if values is None:  # a function without computed results
        return ()
    values = values if isinstance(values, tuple) else (values,)
    for value in values:
        if real and isinstance(value, complex):
            became = ValueError(f"a negative number is raised to a fractional power{TURNS_COMPLEX}")
            raise Raised(became, interpreted=interpreted)
    return values
