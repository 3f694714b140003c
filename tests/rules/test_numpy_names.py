"""Every name of NumPy has a rule, is declared to have no derivative, or is refused with a reason of its own."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np
import pytest
from numpy._pytesttester import PytestTester

from tapegen import differentiable
from tapegen.errors import MissingRule
from tapegen.rules import all_refusals, refusal_of, rule_of

LIST = pathlib.Path(__file__).parents[1].joinpath("numpy_names.txt")
OUT_OF_SCOPE = "out of scope"
GONE = {name for name in ("row_stack",) if not hasattr(np, name)}  # since NumPy 2.5


def groups() -> dict[str, list[str]]:
    """The names, by group."""
    found: dict[str, list[str]] = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            group = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            group += line.split()
    return found


def functions() -> dict[str, Callable]:
    """The functions in scope, by the name that users write."""
    found = {}
    for group, names in groups().items():
        owner = {"numpy.linalg": np.linalg, "numpy.fft": np.fft}.get(group, np)
        if group != OUT_OF_SCOPE:
            found.update({f"{owner.__name__}.{name}": getattr(owner, name) for name in names if name not in GONE})
    return found


def test_every_name_is_known() -> None:
    names = functions()
    assert len(names) == 378 - len(GONE)
    missing = [name for name, func in names.items() if rule_of(func) is None and refusal_of(func) is None]
    assert not missing
    for func in names.values():
        assert rule_of(func) is None or refusal_of(func) is None, f"{func} has a rule and is refused"


def test_what_is_out_of_scope_carries_no_derivative() -> None:
    names = groups()[OUT_OF_SCOPE]
    assert len(names) == 61
    rules = [rule_of(getattr(np, name)) for name in names]
    assert all(rule is None or rule.kind == "inactive" for rule in rules)


def in_order(x: np.ndarray) -> float:
    return float(np.abs(np.sort_complex(x)).max())


def written_as_text(x: np.ndarray) -> float:
    return len(np.array2string(x)) * x.sum()


def test_a_refusal_says_why_and_what_to_write() -> None:
    assert all(refusal.reason.endswith(".") and refusal.advice.endswith(".") for refusal in all_refusals())
    with pytest.raises(MissingRule, match=r"np\.sort_complex is not differentiated: it orders complex numbers"):
        differentiable(in_order).grad(np.ones(4))
    with pytest.raises(MissingRule, match=r"np\.array2string is not differentiated: its result is text"):
        differentiable(written_as_text).grad(np.ones(4))


def test_what_the_modules_hold_is_known() -> None:
    """Nothing that NumPy offers beyond the list goes unnamed: classes and NumPy's own tests are no functions."""
    for module in (np, np.linalg, np.fft):
        functions = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
        missing = [
            name
            for name, func in functions.items()
            if callable(func) and not isinstance(func, type) and not isinstance(func, PytestTester)
            if rule_of(func) is None and refusal_of(func) is None
        ]
        assert not missing
