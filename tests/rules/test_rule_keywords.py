"""Arguments by name: a call of a library function may name every argument that its documentation names."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.rules import Rule
from tapegen.testing import Case
from tests.rule_programs import program_of
from tests.rules.test_rule_programs import NUMPY, SCIPY, first_case, leaves, named

pytestmark = pytest.mark.filterwarnings("ignore:.row_stack. alias:DeprecationWarning")


def by_name(rule: Rule) -> Case | None:
    """The first call of a rule with all its arguments named; None where the function takes them by position only."""
    try:
        parameters = list(inspect.signature(rule.func).parameters.values())
    except ValueError:  # compiled, without a signature
        return None
    for args, kwargs in first_case(rule):
        parameters = parameters[: len(args)]
        if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
            call = (), {p.name: value for p, value in zip(parameters, args, strict=True)} | kwargs
            try:
                rule.func(*call[0], **call[1])
            except TypeError:  # the name is that of the documentation alone
                return None
            return call
    return None


CALLS = [(rule, case) for rule in NUMPY + SCIPY if (case := by_name(rule)) is not None]


def cotangents(rule: Rule, case: Case) -> tuple[Any, Any]:
    function, values = program_of(rule, *case)
    call = differentiable(function, backend="python", wrt=tuple(range(len(values))))
    value, pullback = call.vjp(*values)
    return leaves(value), pullback(value)


def test_most_functions_take_names() -> None:
    assert len(CALLS) > 200


SAMPLE = [*CALLS[::8], *((rule, case) for rule, case in CALLS if rule.func in (np.squeeze, np.real, np.array))]


@pytest.mark.parametrize(("rule", "case"), SAMPLE, ids=[named(rule) for rule, _ in SAMPLE])
def test_named_arguments(rule: Rule, case: Case) -> None:
    check(rule, case)


@pytest.mark.whole
@pytest.mark.parametrize(("rule", "case"), CALLS, ids=[named(rule) for rule, _ in CALLS])
def test_named_arguments_of_all(rule: Rule, case: Case) -> None:
    check(rule, case)


def check(rule: Rule, case: Case) -> None:
    values, bars = cotangents(rule, first_case(rule)[0])
    named_values, named_bars = cotangents(rule, case)
    for got, want in zip([*named_values, *named_bars], [*values, *bars], strict=True):
        np.testing.assert_array_equal(got, want)
