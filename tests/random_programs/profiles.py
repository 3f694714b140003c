"""Weights of the grammar: one profile for each family of silently wrong gradients, and for what surrounds them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# Everything has weight 1 unless it is listed.
BASE: dict[str, float] = {
    "rebind": 0.6,  # probability that an assignment reuses a name
    "in_loop_wrap": 0.75,  # probability that a value carried around a loop is kept small
    "raw": 0.1,  # probability that a partial function is left unguarded
    "single": 0.04,  # probability of float32 arrays
    "layout": 0.3,  # probability of an array argument that is not C-contiguous
    "zero_size": 0.02,
    "unit_size": 0.12,
    "integer_param": 0.4,
    "nasty_names": 0.03,
    "helpers": 0.25,
    # scalars
    "scalar_variable": 6,
    "scalar_element": 5,
    "scalar_binary": 6,
    "scalar_divide": 1.5,
    "scalar_power": 1.5,
    "scalar_function": 3,
    "scalar_reduce": 2,
    "scalar_integer": 0.7,
    "scalar_where": 0.3,
    "scalar_builtin": 0.7,
    "scalar_zero_d": 0.3,
    "scalar_modulo": 0.5,
    "scalar_pole": 0.15,
    "scalar_two_results": 0.3,
    "scalar_statistic": 0.3,
    # arrays
    "array_variable": 7,
    "array_binary": 5,
    "array_scalar": 4,
    "array_function": 3,
    "array_join": 0.6,
    "array_sorted": 0.3,
    "array_make": 0.4,
    "array_gather": 0.6,
    "array_moved": 0.8,
    "array_matmul": 0.8,
    "array_whole": 0.3,
    "array_modulo": 0.3,
    "array_pole": 0.2,
    # statements
    "stmt_assign": 6,
    "stmt_augment": 3,
    "stmt_array": 3,
    "stmt_store": 4,
    "stmt_for": 3,
    "stmt_while": 1.2,
    "stmt_if": 2.5,
    "stmt_list": 0.4,
    "stmt_comprehension": 0.3,
    "stmt_walrus": 0.2,
    "stmt_pass": 0.1,
    "stmt_scatter": 0.5,
    "stmt_mask": 0.5,
    "stmt_early_return": 0.25,
    "stmt_break": 1.5,
    "stmt_integer": 0.8,
    "stmt_closure": 0.15,
    "stmt_swap": 0.5,
    "stmt_alias": 0.8,
    "stmt_call": 2,
    "stmt_delayed": 0.4,
    "stmt_items": 0.5,
    "stmt_lists": 0.3,
    "stmt_pair": 0.3,
    "stmt_state": 0.6,
    "stmt_search": 0.4,
    "stmt_buffers": 0.5,
    "stmt_exchange": 0.4,
    "stmt_long": 0.15,
    "stmt_turned": 0.4,
    "stmt_sized": 0.8,
}

PROFILES: dict[str, dict[str, float]] = {
    "uniform": {},
    # a variable is overwritten while the backward sweep still needs the old value
    "overwrite": {
        "rebind": 0.95,
        "stmt_for": 6,
        "stmt_while": 3,
        "stmt_assign": 10,
        "stmt_augment": 8,
        "stmt_store": 8,
        "scalar_power": 3,
        "scalar_divide": 3,
    },
    # rules that read their own result, inside loops
    "outputs": {
        "rebind": 0.95,
        "stmt_for": 6,
        "stmt_while": 3,
        "stmt_assign": 8,
        "scalar_function": 9,
        "array_function": 8,
        "scalar_divide": 4,
        "function_exp": 6,
        "function_tanh": 6,
        "function_sqrt": 6,
        "function_tan": 4,
        "function_reciprocal": 3,
        "in_loop_wrap": 0.5,
    },
    # two names for one array
    "alias": {
        "stmt_alias": 8,
        "stmt_swap": 4,
        "stmt_store": 8,
        "stmt_array": 5,
        "stmt_array_augment": 4,
        "stmt_if": 4,
        "rebind": 0.85,
        "helpers": 0.4,
        "scalar_element": 9,
        "stmt_buffers": 4,
        "stmt_exchange": 3,
        "stmt_lists": 1,
        "stmt_pair": 1,
    },
    # views read and stored through, overlapping right-hand sides
    "views": {
        "stmt_view": 8,
        "stmt_store": 8,
        "stmt_array_augment": 5,
        "stmt_scatter": 3,
        "stmt_mask": 2,
        "array_slice": 5,
        "array_moved": 4,
        "array_gather": 2,
        "layout": 0.6,
        "stmt_delayed": 2,
        "stmt_turned": 3,
    },
    # integers, bools and their mixtures with floats
    "integers": {
        "integer_param": 1.0,
        "stmt_integer": 6,
        "scalar_integer": 6,
        "scalar_power": 3,
        "stmt_for": 4,
        "stmt_count": 4,
        "stmt_delayed": 3,
        "scalar_round": 2,
        "scalar_modulo": 3,
        "array_modulo": 1.5,
        "stmt_state": 4,
        "stmt_search": 2,
        "array_whole": 2,
    },
    # values that the backward sweep may recompute from the loop index
    "recompute": {
        "stmt_for": 8,
        "stmt_while": 4,
        "stmt_integer": 4,
        "scalar_integer": 5,
        "scalar_element": 8,
        "stmt_store": 6,
        "stmt_count": 3,
        "rebind": 0.8,
        "stmt_recurrence": 4,
        "stmt_state": 3,
        "stmt_search": 3,
        "stmt_turned": 2,
    },
    "calls": {
        "helpers": 1.0,
        "stmt_call": 10,
        "scalar_call": 6,
        "array_call": 4,
        "stmt_closure": 2,
        "stmt_comprehension": 1,
    },
    "broadcast": {
        "unit_size": 0.5,
        "array_broadcast": 6,
        "stmt_array": 6,
        "stmt_array_augment": 6,
        "array_reduce": 4,
        "array_where": 3,
        "integer_param": 0.7,
        "stmt_sized": 4,
        "array_binary": 8,
        "scalar_reduce": 4,
    },
    "names": {"nasty_names": 1.0, "helpers": 0.6},
    "errors": {"raw": 0.2, "stmt_fault": 3},
}

# what the swarm never turns off: without these nothing can be written
ESSENTIAL = frozenset(
    {"scalar_variable", "scalar_constant", "array_variable", "stmt_assign", "rebind", "in_loop_wrap", "raw"}
)


@dataclass(frozen=True)
class Profile:
    """A profile with a random part of the grammar turned off."""

    name: str
    weights: dict[str, float]
    off: frozenset[str] = field(default=frozenset())

    def weight(self, production: str) -> float:
        if production in self.off:
            return 0.0
        if production in self.weights:
            return self.weights[production]
        return BASE.get(production, 0.0 if production == "stmt_fault" else 1.0)


def swarm(name: str, rng: random.Random, productions: list[str]) -> Profile:
    """A profile for one program: productions that its family does not ask for are off with probability one half.

    Turning features off makes the remaining ones meet far more often than a uniform draw does (Groce et al., Swarm
    Testing, 2012).
    """
    weights = PROFILES[name]
    if rng.random() < 0.25:
        return Profile(name, weights)
    keep = ESSENTIAL | weights.keys()
    off = frozenset(p for p in productions if p not in keep and rng.random() < 0.5)
    return Profile(name, weights, off)
