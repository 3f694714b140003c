"""The choice between recording and recomputing against every other choice."""

import itertools
import random

import pytest

from tapegen.transform.recording.min_cut import Option, min_cut_recompute


def total(options, needed, again):
    """The work of a choice."""
    available, work, waiting = set(), 0, list(needed)
    while waiting:
        key = waiting.pop()
        if key in available:
            continue
        available.add(key)
        if key in again:
            work += options[key].evaluate
            waiting += options[key].operands
        else:
            work += options[key].record
    return work


@pytest.mark.parametrize("seed", range(150))
def test_no_other_choice_is_less_work(seed):
    rng = random.Random(seed)
    options = {}
    for key in range(rng.randint(1, 9)):
        if rng.random() < 0.25:
            options[key] = Option(rng.randint(1, 12))
        else:
            operands = tuple(other for other in range(key) if rng.random() < 0.4)
            options[key] = Option(rng.randint(1, 12), rng.choice([0, 1, 3, 8]), operands)
    needed = [key for key in options if rng.random() < 0.4]
    possible = [key for key, option in options.items() if option.evaluate is not None]
    subsets = itertools.chain.from_iterable(itertools.combinations(possible, size) for size in range(len(possible) + 1))
    best = min(total(options, needed, set(again)) for again in subsets)
    assert total(options, needed, min_cut_recompute(needed, options.__getitem__)) == best


def test_what_is_shared_is_counted_once():
    """Evaluating `a` alone costs more than recording `b` or `c`, but serves both."""
    options = {"a": Option(99, 15), "b": Option(12, 1, ("a",)), "c": Option(12, 1, ("a",))}
    assert min_cut_recompute("b", options.__getitem__) == set()
    assert min_cut_recompute("bc", options.__getitem__) == {"a", "b", "c"}
