"""Programs as callables: machine code, or generated Python where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from numba.core.errors import NumbaError

from tapegen.analysis.integer_overflow import ARGUMENT_BITS
from tapegen.backend.numba.build import (
    DISABLED,
    build_numba,
    build_python,
    compile_failure,
    compile_for,
    compiles,
    parameter_type,
    refuse_long,
    typed,
)
from tapegen.backend.printer.module import emit
from tapegen.errors import (
    BuildError,
    CompileLimit,
    InternalError,
    NoCompiledForm,
    PerformanceWarning,
    Span,
    frames_of_tapegen,
)
from tapegen.ir.nodes import Function
from tapegen.ir.passes import deep, without_passes
from tapegen.pipeline.artifacts.generated_text import compiled_source, readable_text
from tapegen.pipeline.artifacts.program import CALLS, Form, Program
from tapegen.pipeline.fault_boundary import internal_error

_GENERAL = "general"

WIDE = 2**ARGUMENT_BITS
"""Integers from here on need the general code: results computed from them may exceed 64 bits."""


def executable(program: Program, form: Form, arguments: Sequence[Any]) -> tuple[str, Callable[..., Any]]:
    """One of the programs for these arguments, and its name among the artifacts."""
    key = key_of(program, form, arguments)
    return key, program.parts.built.get(key) or program.once(key, lambda: _build(program, key, form), "compiling", form)


def key_of(program: Program, form: Form, arguments: Iterable[Any] = ()) -> str:
    """The name of a program for these arguments: that of its form, or another one for code that assumes less."""
    if program.options.backend == "python":
        return form
    general = not program.speculates(form)
    for value in arguments:
        general |= type(value) is int and not -WIDE < value < WIDE
    if general:
        return f"{_GENERAL} {form}"
    return f"{form} of any sizes" if program.short_axes and form in program.parts.sizes_vary else form


def is_general(key: str) -> bool:
    """Whether the code under a key assumes nothing."""
    return key.startswith(_GENERAL)


def compile_only(program: Program, form: Form, arguments: Sequence[Any], *, pullback: bool = False) -> None:
    """Compile one of the programs for these arguments, and do not run it.

    Parameters
    ----------
    program : Program
        The specialization.
    form : Form
        Which program.
    arguments : sequence
        Its arguments.
    pullback : bool
        Whether to compile the pullback as well, for what the program returns (form "record").
    """
    results = _compile(program, form, arguments, lambda built: typed(built, arguments))
    if pullback and results is not None:
        outline = program.outline("record")
        kept = results[len(results) - len(outline.kept) :]
        seeds = [parameter_type(seed.type) for seed in outline.seeds]
        _compile(program, "pullback", (), lambda _: [*kept, *seeds])


def _compile(
    program: Program, form: Form, arguments: Sequence[Any], types: Callable[[Any], Sequence[Any]]
) -> list[Any] | None:
    """The types of the results of a compiled program; None where there is none."""
    key, built = executable(program, form, arguments)
    if isinstance(built, FunctionType):
        return None
    try:
        return compile_for(built, types(built))
    except (NumbaError, CompileLimit) as error:
        if fall_back(program, key, form, error) is None:
            raise
        return None
    except InternalError as fault:
        raise internal(program, fault, form) from fault.__cause__


def fall_back(program: Program, key: str, form: Form, error: Exception) -> Callable[..., Any] | None:
    """The generated Python, from now on, of what numba does not take; None for an error of running."""
    source = program.parts.compiled.get(key)
    failure = compile_failure(error, source) if source is not None else None
    if failure is None:
        return None
    built = program.parts.built[key] = _uncompiled(program, program.function(form), *failure)
    return built


def _build(program: Program, key: str, form: Form) -> Callable[..., Any]:
    if program.options.backend == "python":
        return interpreted(program, program.function(form))
    if program.communicates and program.options.backend == "auto":
        from tapegen.transform.loop_extraction import extract_loops

        function = program.function(form)
        if compiles():
            function = extract_loops(function, lambda loop: _compiled_loop(program, loop))
        return interpreted(program, function)
    if program.communicates:
        raise BuildError("a program that communicates runs as Python.", 'Use backend="auto" or "python".')
    if not compiles():
        return _uncompiled(program, program.function(form), DISABLED, None)
    try:
        source = compiled_source(program, form, general=is_general(key))
        program.parts.compiled[key] = source
        if program.options.backend == "auto":
            refuse_long(source)
        background = program.options.backend == "auto"
        return build_numba(source, from_start=True, kept=program.options.cache, background=background)
    except (NoCompiledForm, CompileLimit) as missing:
        return _uncompiled(program, program.function(form), missing.reason, missing.span)


def _compiled_loop(program: Program, loop: Function) -> Callable[..., Any] | None:
    """A loop of a program that runs as Python, compiled; None where it has no compiled form."""
    from tapegen.loops.pipeline import lower_to_loops

    with program.boundary("printing"), without_passes(program.disabled):
        try:
            with deep():
                text = lower_to_loops(loop, boundscheck=program.options.boundscheck, wide=True)
        except (NoCompiledForm, CompileLimit):
            return None
        source = program.keep(
            emit(text, modules=program.lowered.modules, header=program.header, decorator=program.decorator)
        )
    built: Any = build_numba(source, from_start=True, kept=program.options.cache)
    python: list[Callable[..., Any]] = []

    def call(*args: Any) -> Any:
        if not python:
            try:
                return built(*args)
            except (NumbaError, CompileLimit, InternalError):  # of compiling, at the first call: nothing has run
                python.append(interpreted(program, loop))
        return python[0](*args)

    return call


def _uncompiled(program: Program, function: Function, reason: str, span: Span | None) -> Callable[..., Any]:
    if program.options.backend == "numba":
        raise BuildError(reason, 'Use backend="auto" or "python".', span) from None
    warn_uncompiled(program, function, reason, span)
    return interpreted(program, function)


def interpreted(program: Program, function: Function) -> Callable[..., Any]:
    return build_python(readable_text(program, function), [tape.name for tape in function.tapes])


def warn_uncompiled(program: Program, function: Function, reason: str, span: Span | None) -> None:
    """Report what cannot be compiled: once, for all generated sources of a function."""
    where = f"{span.file}:{span.line}: " if span is not None else ""
    message = f"{where}{reason.rstrip('.')}; the generated Python of {function.name} runs uncompiled"
    if (reason, span) not in program.owner.uncompiled:
        program.owner.uncompiled.add((reason, span))
        warnings.warn(message, PerformanceWarning, stacklevel=frames_of_tapegen())


def internal(program: Program, fault: InternalError, form: Form) -> InternalError:
    """An internal error while numba compiled, with the details of the program."""
    return internal_error(fault.__cause__ or fault, fault.stage, program.subject(CALLS[form]))
