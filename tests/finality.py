"""What final, parallel and within bounds mean, judged by running programs.

A run keeps a journal of which memory cell each statement touches, and when.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegen.analysis.memory_access import expressions, operands, statements
from tapegen.analysis.polyhedral.array_liveness import ArrayLiveness, final_loads
from tapegen.ir.nodes import Assign, For, Function, Load, Stmt, Store, Var
from tapegen.ir.types import Scalar
from tests.ir_random import SIZE
from tests.ir_text import function
from tests.ir_trace import Access, Cells, Trace

HEAD = "def f(a: A1, b: A1, m: A2, p: I1, x: F, n: I):\n"


# ---- the oracle ------------------------------------------------------------------------------------------------------


def is_overwritten(trace: Trace, read: Access, *, from_time: int | None = None) -> bool:
    start = read.time if from_time is None else from_time
    cells = set(read.cells)
    return any(write.time > start and not cells.isdisjoint(write.cells) for write in trace.writes)


def truly_final(trace: Trace, stmt: Stmt, array: Var, index: tuple[Any, ...]) -> bool:
    """Whether no execution of a read is followed by a write to what it read."""
    reads = [read for read in trace.reads if (read.stmt, read.array, read.index) == (stmt, array, index)]
    return not any(is_overwritten(trace, read) for read in reads)


def truly_kept(trace: Trace, store: Store) -> bool:
    return not any(is_overwritten(trace, write) for write in trace.writes if write.stmt is store)


def truly_kept_in(trace: Trace, definition: Assign, load: Load) -> bool:
    """Whether each run of a definition is followed by a store of its value to one place, which stays."""
    runs = {read.trips for read in trace.reads if read.stmt is definition}
    stored = [
        write
        for write in trace.writes
        if (write.array, write.index) == (load.array, load.index)
        and isinstance(write.stmt, Store)
        and write.stmt.value == definition.targets[0]
        and not write.stmt.accumulate
    ]
    kept = [write.trips for write in stored if not is_overwritten(trace, write)]
    return trace.raised is not None or runs <= set(kept)


def loads(program: Function) -> Iterator[tuple[Stmt, Var, tuple[Any, ...]]]:
    """All reads of a program."""
    for stmt, _ in statements(program.body):
        for expr in expressions(stmt):
            for array, index in operands(expr):
                yield stmt, array, index


def stores(program: Function) -> list[Store]:
    return [stmt for stmt, _ in statements(program.body) if isinstance(stmt, Store)]


def loops(program: Function) -> list[For]:
    return [stmt for stmt, _ in statements(program.body) if isinstance(stmt, For)]


def check(program: Function, traces: list[Trace]) -> tuple[int, int]:
    """No proof is refuted by a run; counts (proved, true) over all questions."""
    finality = final_loads(program)
    proved = true = 0

    def compare(answer: bool, truths: list[bool], question: object) -> None:
        nonlocal proved, true
        if answer:
            assert all(truths), (question, [trace.raised for trace in traces])
        proved += answer
        true += all(truths)

    for stmt, array, index in loads(program):
        truths = [truly_final(trace, stmt, array, index) for trace in traces]
        compare(finality.contents_final(stmt, array, index), truths, ("final", stmt, array, index))
        if finality.is_final(stmt, array, index):
            for trace in traces:
                check_named(finality, trace, stmt, array, index)
    for store in stores(program):
        kept = [truly_kept(trace, store) for trace in traces]
        compare(finality.contents_final(store, store.array, store.index, after=True), kept, ("kept", store))
    for stmt, _ in statements(program.body):
        if isinstance(stmt, Assign) and isinstance(stmt.value, Load) and isinstance(stmt.value.type, Scalar):
            kept_load = finality.unmodified_element(stmt.targets[0])
            if kept_load is not None:
                assert all(truly_kept_in(trace, stmt, kept_load) for trace in traces), ("kept in", stmt, kept_load)
    return proved, true


def check_named(finality: ArrayLiveness, trace: Trace, stmt: Stmt, array: Var, index: tuple[Any, ...]) -> None:
    """What is_final allows: read the same cells again at the end, through the name, or its view made again."""
    if not finality.effects.is_written(array):
        return
    for read in trace.reads:
        if (read.stmt, read.array, read.index) == (stmt, array, index):
            again = place_again(finality, trace, array, stmt, read)
            np.testing.assert_array_equal(np.ravel(again.ids[read.point]), read.cells)


def place_again(finality: ArrayLiveness, trace: Trace, name: Var, stmt: Stmt, read: Access) -> Cells:
    if finality.value_available(name, stmt):
        return trace.env[name]
    (definition,) = finality.sites.definitions[name]
    value = definition.value
    base = value.array if isinstance(value, Load) else value.args[0]  # type: ignore[union-attr]
    found = place_again(finality, trace, base, stmt, read)
    trace.env, kept = {**read.env, base: found}, trace.env
    try:
        return trace.value(value)
    finally:
        trace.env = kept


# ---- what is proved --------------------------------------------------------------------------------------------------


def finals(text: str) -> dict[str, bool]:
    """Name of each loaded value to whether its load is final."""
    program = function(text)
    finality = final_loads(program)
    return {
        stmt.targets[0].name: finality.is_final(stmt, stmt.value.array, stmt.value.index)
        for stmt, _ in statements(program.body)
        if isinstance(stmt, Assign) and isinstance(stmt.value, Load)
    }


def kept(text: str) -> list[bool]:
    """Whether what each store writes stays."""
    program = function(text)
    finality = final_loads(program)
    return [finality.is_final(store, store.array, store.index, after=True) for store in stores(program)]


def traces_of(program: Function, sizes: tuple[int, ...], seeds: tuple[int, ...] = (0,)) -> list[Trace]:
    axis = np.zeros(SIZE)
    return [
        Trace(program, {"a": axis, "b": axis, "m": np.zeros((SIZE, SIZE)), "p": p, "x": 0.5, "n": n}, seed)
        for n in sizes
        for seed in seeds
        for p in (np.array([0, 1, 2]), np.array([2, 2, 1]))
    ]
