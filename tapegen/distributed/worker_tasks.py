"""What workers run: the machine code for their processors, one partition, and sums.

Functions travel as bytes that each worker reads once, so that its tasks share what is compiled.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tapegen.api import Differentiable
from tapegen.backend.cache.machine_code import processor
from tapegen.backend.cache.store import collected, key_of, store
from tapegen.frontend.values.pytree import children_of, rebuild

Found = tuple[Any, Any]
"""A value and a gradient."""

Entries = tuple[str, dict[str, bytes]]
"""A kind of machine, and entries of the disk cache that hold on it."""

_made: dict[bytes, dict[str, bytes]] = {}
_installed: set[str] = set()


def held(value: Any) -> Any:
    """A value as the result of a task: it is sent once, and made again where its holder is lost."""
    return value


@functools.lru_cache(maxsize=64)
def function_of(data: bytes) -> Differentiable:
    """The function that was sent; the same object for the same bytes, so that a worker reads and compiles it once."""
    found = pickle.loads(data)
    assert isinstance(found, Differentiable)
    return found


def machine() -> str:
    """What machine code depends on: the processor, and the versions of what compiles."""
    return key_of("machine", *map(str, processor()))


def compiled(function: bytes, params: Sequence[Any], part: Any) -> Entries:
    """Compile for the types of a partition; return what the cache has of the function."""
    with collected() as found:
        function_of(function).precompile(*_own(params, part))
    kept = _made.setdefault(hashlib.sha256(function).digest(), {})
    kept.update(found)  # what this process has compiled before is not compiled again, but is wanted all the same
    return machine(), dict(kept)


def partition_gradient(
    function: bytes, params: Sequence[Any], part: Any, number: int, entries: Iterable[Entries]
) -> Found:
    """Value and gradient of one partition."""
    for kind, found in entries:
        if not _installed.issuperset(found) and kind == machine():
            _install(found)
    try:
        value, gradient = function_of(function).value_and_grad(*_own(params, part))
    except Exception as error:
        error.add_note(f"in partition {number}")
        raise
    return value, gradient


def _own(params: Sequence[Any], part: Any) -> tuple[Any, ...]:
    """Arguments that a function may write into.

    What was received serves other tasks as well; its arrays are read-only, and may not be aligned.
    """
    return copy.deepcopy((*params, part))


def _install(entries: Mapping[str, bytes]) -> None:
    """Put entries into the cache on disk of this machine."""
    kept = store()
    if kept is not None:
        for key, payload in entries.items():
            if kept.load(key) is None:
                kept.save(key, payload)
    _installed.update(entries)


def added(terms: Sequence[Found]) -> Found:
    """The sum of values and gradients, from left to right."""
    return functools.reduce(lambda a, b: (a[0] + b[0], _sum(a[1], b[1])), terms)


def _sum(a: Any, b: Any) -> Any:
    if a is None:
        return None
    struct = None if isinstance(a, int | float | complex | np.ndarray | np.generic) else children_of(a)
    if struct is None or hasattr(a, "__array__"):  # labelled arrays add up too
        return a + b
    other = children_of(b)
    assert other is not None
    return rebuild(struct, [_sum(*pair) for pair in zip(struct.children, other.children, strict=True)])


__all__ = ["Entries", "Found", "added", "compiled", "function_of", "held", "machine", "partition_gradient"]
