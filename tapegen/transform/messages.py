"""Messages of programs: where they are, and programs without them, for what runs a second time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Block, Call, Derivation, Effect, Function, Routine
from tapegen.ir.progress_bars import PROGRESS


def called_functions(body: Block, known: frozenset[Routine] = frozenset()) -> frozenset[Any]:
    """The functions that a program and the routines that it calls call."""
    called = frozenset[Any]().union(*map(traversal.calls, body))
    routines = frozenset(traversal.routines(body)) - known
    inner = (routine.function.body for routine in routines if routine.function is not None)
    return called.union(*(called_functions(each, known | routines) for each in inner))


def has_messages(body: Block) -> bool:
    """Whether a program, or a routine that it calls, prints, logs or warns."""
    return any(map(intrinsics.tells, called_functions(body)))


def without_messages(function: Function) -> Function:
    """The program without its messages, which another run of it writes."""
    return traversal.with_body(function, _silent(function.body)) if has_messages(function.body) else function


def without_progress(function: Function) -> Function:
    """The program without progress bars, for source that runs without tapegen."""
    called = frozenset[Any]().union(*map(traversal.calls, function.body))
    return function if called.isdisjoint(PROGRESS) else traversal.with_body(function, _bare(function.body))


def _bare(block: Block) -> Block:
    kept = (stmt for stmt in block if not (isinstance(stmt, Effect) and stmt.call.func in PROGRESS))
    return tuple(traversal.with_blocks(stmt, tuple(map(_bare, stmt.blocks))) for stmt in kept)


def _silent(block: Block) -> Block:
    kept = (stmt for stmt in block if not (isinstance(stmt, Effect) and intrinsics.tells(stmt.call.func)))
    return tuple(
        traversal.with_blocks(traversal.map_headers(stmt, _mapped), tuple(map(_silent, stmt.blocks))) for stmt in kept
    )


def _mapped(expr: Any) -> Any:
    return traversal.map_expr(expr, _silent_call)


def _silent_call(expr: Any) -> Any:
    """A call of a routine with messages as one of its variant without."""
    if not (isinstance(expr, Call) and isinstance(expr.func, Routine)):
        return expr
    function = expr.func.function
    if function is None or not has_messages(function.body):
        return expr
    return replace(expr, func=_silent_routine(expr.func, function))


def _silent_routine(routine: Routine, function: Function) -> Routine:
    """The routine without its messages; it may call itself."""
    key = Derivation(routine, "silent", (), ())
    if key not in routine.derived:
        silent = routine.derived[key] = Routine(f"{routine.name}_silent", None, routine.shares)
        silent.function = replace(without_messages(function), name=silent.name)
    return routine.derived[key]
