"""The user's locations of errors of generated code."""

from __future__ import annotations

import re
from collections.abc import Set

from tapegen.backend.numba.build import error_line
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import Span
from tapegen.ir import intrinsics
from tapegen.ir.names import BACKWARD
from tapegen.ir.nodes import Assign, Block, Call, Effect, For, Var, While
from tapegen.pipeline.artifacts.program import Form, Program


def location(program: Program, error: BaseException) -> tuple[Span | None, bool]:
    """The user's location of an error of generated code, and whether the backward sweep raised it."""
    for source in program.parts.sources.values():
        line = error_line(source, error.__traceback__)
        if line:
            return location_of_line(source, line)
    return None, False


def loop_of_tape(program: Program, error: BaseException, form: Form) -> Span | None:
    """The loop whose tape does not fit into memory, if an error reports that."""
    for source in program.parts.sources.values():
        line = error_line(source, error.__traceback__) if isinstance(error, MemoryError) else 0
        if line:
            target = source.text.splitlines()[line - 1].partition(" = ")[0].strip()
            if target in {var.name for var in program.function(form).tapes}:  # allocated before its loop, or in it
                return next(filter(None, source.line_map[line:]), None)
    return None


def growing_loops(program: Program, form: Form, error: BaseException) -> list[Span]:
    """The loops that grow the tape that does not fit; of all tapes that grow, if that is not known."""
    function = program.function(form)
    tapes = {tape.name for tape in function.tapes}
    found: dict[str, Span | None] = {}
    _grown_in(function.body, tapes, None, found)
    for source in program.parts.sources.values():
        line = error_line(source, error.__traceback__)
        if line:
            name = re.split(r"\W", source.text.splitlines()[line - 1].strip(), maxsplit=1)[0]
            if name in tapes:
                found = {name: found[name]} if name in found else {}
    return list(dict.fromkeys(span for span in found.values() if span is not None))


def _grown_in(body: Block, tapes: Set[str], around: For | While | None, found: dict[str, Span | None]) -> None:
    """Note the loop to blame for each growing tape: the outermost one that may not end, or the outermost one."""
    for stmt in body:
        match stmt:
            case Assign((Var(name),), Call(intrinsics.grown)) | Effect(Call(intrinsics.append, (Var(name), *_))) if (
                name in tapes
            ):
                found.setdefault(name, None if around is None else around.origin)
        loop = around
        if (isinstance(stmt, While) and not isinstance(around, While)) or (isinstance(stmt, For) and around is None):
            loop = stmt
        for block in stmt.blocks:
            _grown_in(block, tapes, loop, found)


def location_of_line(source: PythonSource, line: int) -> tuple[Span | None, bool]:
    """The user's location of a line, and whether it belongs to the backward sweep."""
    before = source.text.splitlines()[:line]
    backward = source.entry.endswith("_pullback") or any(BACKWARD in text for text in before)
    while backward and line > 1 and source.origin(line) is None and BACKWARD not in before[line - 1]:
        line -= 1  # the user's statement is a comment on the lines that belong to it; helpers have none
    return source.origin(line), backward
