"""Save and restore of the states of random generators among the arguments, so that a program can run again."""

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


def restore_states(states: States) -> None:
    """Reset generators to their saved states, so that they repeat their draws."""
    for generator, state in states:
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        else:
            generator.set_state(state)


@contextmanager
def repeating_draws(states: States) -> Iterator[None]:
    """Within, generators repeat their draws from these states; afterwards they continue from their present state."""
    now = states_of(generator for generator, _ in states)
    restore_states(states)
    try:
        yield
    finally:
        restore_states(now)
