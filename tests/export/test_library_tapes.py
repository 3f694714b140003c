"""Tapes of libraries that hold lists, and what becomes of memory where there is none left."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.aot import build
from tests.libraries import load, run_program, same

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def shrinking(x):
    total = 0.0
    while x.size > 1:
        total += np.sum(np.sin(x) * x)
        x = x[1:] * x[:-1]
    return total


def collected(x):
    parts = []
    y = x
    while np.sum(y * y) > 0.1:
        parts.append(y)
        y = np.sin(y) * 0.7
    total = 0.0
    for part in parts:
        total += np.sum(part**3)
    return total


def numbers(x, n):
    items = [0.5]
    for i in range(n):
        items.append(items[-1] * x[i % x.size] + np.sin(items[i]))
    total = 0.0
    for item in items:
        total += item * item
    return total


def flags(x, n):
    kept = [True]
    small = [np.float32(0.5)]
    for i in range(n):
        kept.append(x[i % x.size] > 0.5)
        small.append(np.float32(i) * small[-1])
    total = 0.0
    for i in range(len(kept)):
        if kept[i]:
            total += x[i % x.size] ** 2 * small[i]
    return total


X = np.linspace(1.0, 2.0, 6)


@pytest.mark.parametrize(
    ("func", "arguments"), [(shrinking, (X,)), (collected, (X,)), (numbers, (X, 5)), (flags, (X - 1.0, 7))]
)
def test_tapes_with_lists(func: Callable[..., Any], arguments: tuple[Any, ...], tmp_path: Path) -> None:
    f = tg.differentiable(func)
    module = load(build(f, *arguments, directory=tmp_path, modes=["split"], cpu="native", name="lists"))
    value, pullback = getattr(module, f"{func.__name__}_vjp")(*arguments)
    value_, pullback_ = f.vjp(*arguments)
    same(value, value_)
    for bar in (1.0, -2.5, 1.0):
        same(pullback(bar), pullback_(bar))


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Libraries of pairs of sweeps, each built once."""

    @functools.cache
    def built(func: Callable[..., Any]) -> Path:
        return build(func, X, directory=tmp_path_factory.mktemp(func.__name__), modes=["split"], name="lists")

    return built


def test_a_list_holds_copies_of_what_belongs_to_the_caller(lists: Callable[..., Path]) -> None:
    x = X.copy()
    module = load(lists(collected))
    _, pullback = module.collected_vjp(x)
    expected = pullback(1.0)
    x[:] = np.nan
    same(pullback(1.0), expected)


def columns(a):
    return np.sum(a[:, 0] * a[:, 1] ** 2)


def thinned(a):
    total = 0.0
    while a.shape[1] > 1:
        total += np.sum(np.sin(a) * a)
        a = a[:, 1:] * a[:, :-1]
    return total


@pytest.mark.parametrize("func", [columns, thinned])
@pytest.mark.parametrize("order", ["C", "F", "A"])
def test_orders_in_memory_on_tapes(func: Callable[..., Any], order: str, tmp_path: Path) -> None:
    a = np.random.default_rng(6).uniform(0.5, 1.5, (4, 6))[:, ::2]
    a = a if order == "A" else np.array(a, order=order)
    f = tg.differentiable(func)
    module = load(build(f, a, directory=tmp_path, modes=["split"], cpu="native", name="ordered"))
    value, pullback = getattr(module, f"{func.__name__}_vjp")(a)
    value_, pullback_ = f.vjp(a)
    same(value, value_)
    same(pullback(2.0), pullback_(2.0))


PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "lists.h"

int main(void) {{
    double x[6] = {{1, 1.2, 1.4, 1.6, 1.8, 2}}, first[6], again[6], value;
    lists_{name}_tape *tape, *other;
    int failed = lists_{name}_record(x, 6, &value, &tape);
    failed |= lists_{name}_record(x, 6, &value, &other);
    memset(x, 0, sizeof x);
    failed |= lists_{name}_pullback(tape, 1.0, first);
    for (int i = 0; i < 3; i++) {{
        failed |= lists_{name}_pullback(i ? tape : other, 1.0, again);
        failed |= memcmp(first, again, sizeof first) != 0;
    }}
    lists_{name}_tape_free(tape);
    lists_{name}_tape_free(other);
    return failed;
}}
"""


@pytest.mark.parametrize("func", [shrinking, collected])
def test_a_c_program_with_lists_on_its_tape(func: Callable[..., Any], lists: Callable[..., Path]) -> None:
    run_program(lists(func).parent, PROGRAM.format(name=func.__name__), "cc", suffix=".c")
