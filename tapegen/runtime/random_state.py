"""Generators of random numbers among the arguments of a program: what they were, so that it can be run once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

States = list[tuple[Any, Any]]


def states_of(leaves: Iterable[Any]) -> States:
    """The generators among some values, each with its state."""
    found: States = []
    for leaf in leaves:
        if isinstance(leaf, np.random.Generator):
            found.append((leaf, leaf.bit_generator.state))
        elif isinstance(leaf, np.random.RandomState):
            found.append((leaf, leaf.get_state(legacy=False)))
    return found


def put_back(states: States) -> None:
    """Let generators draw again what they have drawn since."""
    for generator, state in states:
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        else:
            generator.set_state(state)


@contextmanager
def drawing_again(states: States) -> Iterator[None]:
    """Within, generators draw what they drew from these states on; afterwards they go on where they are now."""
    now = states_of(generator for generator, _ in states)
    put_back(states)
    try:
        yield
    finally:
        put_back(now)
