"""Axes that are counted from the end: each rule is checked with them where it is checked with an axis."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tapegen.rules import Rule
from tapegen.testing import check_rule
from tests.rule_audit import arrays, given, has
from tests.rules.test_rule_programs import NUMPY, SCIPY, all_cases, named
from tests.scipy_cases import ONE_SECTION


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return np.shape(a) == np.shape(b) and np.array_equal(a, b)


def from_the_end(rule: Rule) -> tuple[tuple, dict[str, Any]] | None:
    """The first call with an axis, with the same axis counted from the end."""
    assert rule.body is not None
    names = list(inspect.signature(rule.body).parameters)
    for (args, kwargs), call in zip(all_cases(rule), given(rule), strict=True):
        axis = call.get("axis")
        if type(axis) is not int or axis < 0:
            continue
        result = rule.func(*args, **kwargs)
        rank = max(array.ndim for array in arrays(tuple(call.values())))
        for negative in (axis - rank, axis - rank - 1):
            position = names.index("axis")
            by_name = "axis" in kwargs
            changed = args if by_name else (*args[:position], negative, *args[position + 1 :])
            keywords = {**kwargs, "axis": negative} if by_name else kwargs
            try:
                other = rule.func(*changed, **keywords)
            except (ValueError, IndexError):
                continue
            if same(other, result):
                return changed, keywords
    return None


RULES = [rule for rule in NUMPY + SCIPY if has(rule, "axis") and rule.func not in ONE_SECTION]
CASES = [(rule, case) for rule in RULES if (case := from_the_end(rule)) is not None]


def test_most_rules_with_an_axis_are_checked() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize(("rule", "case"), CASES, ids=[named(rule) for rule, _ in CASES])
def test_an_axis_counted_from_the_end(rule: Rule, case: tuple[tuple, dict[str, Any]]) -> None:
    check_rule(rule.func, cases=[case])
