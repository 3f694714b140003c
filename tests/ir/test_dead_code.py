"""Dead code elimination: what no live statement needs is removed, whatever may be removed for a client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen.ir.dead_code import remove_dead
from tapegen.ir.nodes import Assign, For, If, Stmt, Store
from tapegen.ir.printer import block_text
from tests.nests_reader import read

X = np.ones(3)


def may_go(stmt: Stmt) -> bool:
    return isinstance(stmt, (Assign, Store, If, For))


def left(text: str, *args: Any) -> str:
    """The body of a function without its dead statements."""
    return block_text(remove_dead(read(text, args).body, (), may_go))


def test_definitions_that_only_need_each_other_are_dead() -> None:
    text = """
def f(x):
    a = 0.0
    b = 1.0
    s = 0.0
    for i in range(x.shape[0]):
        a = b * 2.0
        b = a + x[i]
        s = s + x[i]
    return s
"""
    found = left(text, X)
    assert "a =" not in found
    assert "b =" not in found
    assert "s = s + x[i]" in found


def test_a_loop_is_needed_for_what_is_in_it() -> None:
    text = """
def f(x, k):
    s = 0.0
    for i in range(x.shape[0]):
        if k > i:
            {}
    return s
"""
    assert "for" not in left(text.format("t = x[i]"), X, 2)
    assert "if k > i" in left(text.format("s = s + x[i]"), X, 2)


@pytest.mark.parametrize(("result", "stays"), [("np.size(t)", False), ("t[0]", True)])
def test_stores_into_an_array_that_is_measured_are_dead(result: str, stays: bool) -> None:
    text = f"""
def f(x):
    t = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        t[i] = x[i] * 2.0
    return {result}
"""
    found = left(text, X)
    assert "np.empty" in found
    assert ("t[i]" in found) == stays


def test_a_store_needs_the_name_of_its_array() -> None:
    text = """
def f(x):
    t = np.zeros(3)
    t[1] = x[0]
    return t
"""
    found = left(text, X)
    assert "np.zeros" in found
    assert "t[1] = x[0]" in found
