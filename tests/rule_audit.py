"""Which kinds of call each rule is checked with: `python -m tests.rule_audit [what]` prints the rules that lack one.

Every call of a rule goes through `check_rule`: value unchanged, differences, dot products, single precision, strided
and read-only arguments, arguments untouched, cotangents that share no memory.  tests/rules/test_rule_programs.py takes
both modes to second order and the text for numba, tests/rules/test_rule_axes.py axes that are counted from the end,
tests/rules/test_rule_shapes.py calls with other shapes.  What differs
between rules is what they are called with.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegen.rules import Rule
from tests.rule_cases import EXACT
from tests.rules.test_rule_programs import NUMPY, SCIPY, all_cases, named
from tests.rules.test_rule_shapes import CRASHES, all_variants, plain


def arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays(item)


def given(rule: Rule) -> list[dict[str, Any]]:
    """The arguments of each call, by name."""
    assert rule.body is not None
    signature = inspect.signature(rule.body)
    return [dict(signature.bind_partial(*args, **kwargs).arguments) for args, kwargs in all_cases(rule)]


def has(rule: Rule, name: str) -> bool:
    return rule.body is not None and name in inspect.signature(rule.body).parameters


def axes(rule: Rule) -> list[Any]:
    return [call.get("axis") for call in given(rule)]


def any_array(rule: Rule, test: Callable[[np.ndarray], bool]) -> bool:
    """Whether a call has such an array, or a variant of a call that the function itself takes (`-m whole`)."""
    cases = [*all_cases(rule), *all_variants(rule).values()]
    return any(
        any(map(test, arrays([*args, *kwargs.values()]))) and taken(rule, args, kwargs) for args, kwargs in cases
    )


def taken(rule: Rule, args: tuple, kwargs: dict[str, Any]) -> bool:
    if rule.func in CRASHES:
        return False
    try:
        plain(rule, (args, kwargs))
    except Exception:  # whatever it says to arrays of such shapes
        return False
    return True


WHAT: dict[str, tuple[Callable[[Rule], bool], Callable[[Rule], bool]]] = {
    "fifty digits": (lambda rule: rule.kind == "partials", lambda rule: rule.func in EXACT),
    "axis": (lambda rule: has(rule, "axis"), lambda rule: any(axis is not None for axis in axes(rule))),
    "keepdims": (lambda rule: has(rule, "keepdims"), lambda rule: any(call.get("keepdims") for call in given(rule))),
    "tuple of axes": (
        lambda rule: has(rule, "axis") and has(rule, "keepdims"),
        lambda rule: any(isinstance(axis, tuple) for axis in axes(rule)),
    ),
    "no elements": (lambda rule: True, lambda rule: any_array(rule, lambda array: array.size == 0)),
    "axis of size 1": (lambda rule: True, lambda rule: any_array(rule, lambda array: 1 in array.shape)),
}
"""What is looked for: which rules it concerns, and which have it."""


def lacking(what: str) -> tuple[list[str], int]:
    """The rules without calls of a kind, and how many rules it concerns."""
    concerns, found = WHAT[what]
    rules = [rule for rule in NUMPY + SCIPY if concerns(rule)]
    return [named(rule) for rule in rules if not found(rule)], len(rules)


def main() -> None:
    for what in sys.argv[1:] or WHAT:
        names, count = lacking(what)
        print(f"{what}: {count - len(names)} of {count}")
        if sys.argv[1:]:
            print("  " + "\n  ".join(names))


if __name__ == "__main__":
    main()
