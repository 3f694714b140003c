"""Liveness analysis: the variables that are live when a block of compiled code begins.

numba needs this after most of its passes, and merges a set of names for each block with those of its neighbours until
they are stable.  For a source of two thousand lines that was a fifth of the compile time.  Here a set is an
integer with a bit for each variable.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from numba.core import analysis


@contextmanager
def fast_liveness() -> Iterator[None]:
    """A context in which numba calls `live_map`; for the thread that holds its lock."""
    own = analysis.compute_live_map
    analysis.compute_live_map = live_map
    try:
        yield
    finally:
        analysis.compute_live_map = own


def live_map(
    cfg: Any, blocks: Mapping[int, Any], used: Mapping[int, set[str]], given: Mapping[int, set[str]]
) -> dict[int, set[str]]:
    """The variables that are live when each block begins; the result of `numba.core.analysis.compute_live_map`.

    Parameters
    ----------
    cfg : numba.core.controlflow.CFGraph
        The control-flow graph of the blocks.
    blocks : mapping of int to Block
        The blocks.
    used : mapping of int to set of str
        Variables that a block reads before it assigns them.
    given : mapping of int to set of str
        Variables that a block assigns.
    """
    names = sorted(set().union(*used.values(), *given.values()))
    bits = {name: 1 << k for k, name in enumerate(names)}
    live = {offset: _joined(bits, used[offset]) for offset in blocks}
    lost = {offset: ~_joined(bits, given[offset]) for offset in blocks}
    reached = {offset: live[offset] | ~lost[offset] for offset in blocks}
    order = cfg.topo_order()
    _spread(reached, [(one, [after for after, _ in cfg.successors(one)]) for one in order])
    through = {offset: reached[offset] & lost[offset] for offset in blocks}
    _spread(live, [(one, [before for before, _ in cfg.predecessors(one)]) for one in reversed(order)], through)
    return {offset: {names[k] for k in _positions(found)} for offset, found in live.items()}


def _joined(bits: Mapping[str, int], names: set[str]) -> int:
    found = 0
    for name in names:
        found |= bits[name]
    return found


def _spread(
    sets: dict[int, int], neighbours: list[tuple[int, list[int]]], through: Mapping[int, int] | None = None
) -> None:
    """Propagate the set of each block to its neighbours, masked by theirs, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for one, others in neighbours:
            for other in others:
                joined = sets[other] | (sets[one] if through is None else sets[one] & through[other])
                if joined != sets[other]:
                    sets[other], changed = joined, True


def _positions(found: int) -> Iterator[int]:
    while found:
        last = found & -found
        yield last.bit_length() - 1
        found ^= last
