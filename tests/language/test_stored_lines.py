"""Stores of one line of an array into another one: refused where NumPy does not store what a copy would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tapegen as tg
from tests.grown.program import load, unload

ROW = ("x[:4]", "x[4:]", "x[2:6]", "x[::2]", "x[1::2]", "x[::-2]", "x[3::-1]", "y[:4]", "y[::2]", "y[2:6]")
MATRIX = ("m[1]", "m[2, :]", "m[:, 2]", "m[:, 1]", "m[-1]", "m[::-1, 0]", "z[1]", "z[:, 2]", "m.T[2]")

PROGRAM = """
import numpy as np

def f(v):
    x = np.concatenate((v, v * v))
    y = x[::-1]
    m = np.outer(v, v + 1.0)
    z = m[::-1]
    {target} = {source}
    return np.sum(x * np.arange(8.0)) + np.sum(m * np.arange(16.0).reshape(4, 4) ** 2)

def arguments():
    return (np.array([0.5, 0.7, 1.1, 1.9]),)
"""


@pytest.mark.parametrize("target", [*ROW, *MATRIX])
def test_lines_of_an_array(target: str) -> None:
    for source in ROW if target in ROW else MATRIX:
        loaded = load(PROGRAM.format(target=target, source=source))
        copying = load(PROGRAM.format(target=target, source=f"np.array({source})"))
        v = np.array([0.5, 0.7, 1.1, 1.9])
        plain, copied = loaded.function(v.copy()), copying.function(v.copy())
        made = tg.differentiable(loaded.function, backend="python", cache=False)
        try:
            value, _ = made.jvp((v,), (np.ones(4),))
        except tg.AliasError:
            continue
        finally:
            unload(loaded)
            unload(copying)
        assert plain == copied == pytest.approx(value), source


def rotate(v: np.ndarray) -> float:
    x = v * 2.0
    x[1:] = x[:-1]
    x[:-2] = x[2:]
    x[:] = x[::-1]
    x[: len(x) // 2] = x[::2]
    return np.sum(x * np.arange(len(v)))


def symmetrize(v: np.ndarray) -> float:
    m = np.outer(v, v + 1.0)
    for i in range(len(v)):
        m[i, i + 1 :] = m[i + 1 :, i]
        m[:, i] = m[i]
    m[0] = m[2]
    m[::2, 1] = m[1::2, 3]
    return np.sum(m * np.arange(m.size).reshape(m.shape))


def shift_history(v: np.ndarray) -> float:
    old, new = v * 2.0, v * 3.0
    for _ in range(3):
        old[:] = new
        old, new = new, old
    return np.sum(old * new)


def choose(v: np.ndarray) -> float:
    m = np.outer(v, v + 1.0)
    for k in range(3):
        near, far = m[k] * 2.0, m[k + 1] - m[0]
        m[-1] = near if v[k] > 0.8 else far
        m[0] = m[1] if v[k] > 0.6 else near
        m = m[::-1] * 0.5
    return np.sum(m * np.arange(m.size).reshape(m.shape))


def borders(v: np.ndarray) -> float:
    left, old, new = np.outer(v, v), np.outer(v, v + 1.0), np.zeros((4, 4))
    u = old.copy()
    for t in range(3):
        new[1:-1, :] = 0.5 * (old[:-2] + old[2:])
        new[0] = old[0]
        new[:, -1] = old[:, -2]
        new[:, 0] = left[t]
        old, new = new, old
        u[:, 0] = left[t, :]
        u = u * 0.9
    both = old if v[0] > 0.1 else left
    both[:, 1] = u[0, ::-1]
    return np.sum(old * old) + np.sum(u * u)


@pytest.mark.parametrize("function", [rotate, symmetrize, shift_history, choose, borders])
def test_lines_of_equal_strides_are_stored(function: Callable[[np.ndarray], float]) -> None:
    v = np.array([0.5, 0.7, 1.1, 1.9])
    made = tg.differentiable(function, backend="python", cache=False)
    value, gradient = made.value_and_grad(v.copy())
    assert value == pytest.approx(function(v.copy()))
    for k, part in enumerate(gradient):
        step = 1e-6 * np.eye(4)[k]
        assert part == pytest.approx((function(v + step) - function(v - step)) / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("source", ["x[::2] if v[0] > 9 else v", "v if v[0] > 9 else x[::2]"])
def test_a_line_on_some_paths_is_refused(source: str) -> None:
    text = f"import numpy as np\ndef f(v):\n    x = np.append(v, v)\n    x[1:5] = {source}\n    return np.sum(x)\n"
    loaded = load(text + "def arguments():\n    return (np.arange(4.0),)\n")
    try:
        with pytest.raises(tg.AliasError, match="element by element"):
            tg.grad(loaded.function)(np.arange(4.0))
    finally:
        unload(loaded)


@pytest.mark.parametrize("store", ["x[::2] = x[:4]", "x[::2][:2] = x[1:3]", "x[2:][::2] = x[:3]", "x.T[::2] = x[:4]"])
def test_lines_of_an_array_that_a_loop_replaces_are_refused(store: str) -> None:
    loop = f"    for _ in range(2):\n        {store}\n        x = x * 1.5\n"
    text = f"import numpy as np\ndef f(x):\n{loop}    return np.sum(x)\n"
    loaded = load(text + "def arguments():\n    return (np.arange(8.0),)\n")
    try:
        with pytest.raises(tg.AliasError, match="element by element"):
            tg.grad(loaded.function)(np.arange(8.0))
    finally:
        unload(loaded)


LINES = ("x[:3]", "x[::2]", "x[1::2]", "x[2:5]", "x[4:1:-1]", "y[:3]", "m[0]", "m[:, 1]", "m[1, ::-1]")


@pytest.mark.parametrize("target", LINES)
@pytest.mark.parametrize("swap", ["a, b = b, a", "b = x[k : k + 3]", "a = a * 1.5"])
def test_lines_that_a_loop_carries(target: str, swap: str) -> None:
    text = """
import numpy as np

def f(v, n):
    x = np.concatenate((v, v * v))
    y = x * 2.0
    m = np.outer(v, v + 1.0)
    a, b = {source}, {target}
    for k in range(n):
        b[:] = a
        {swap}
    return np.sum(x * np.arange(6.0)) + np.sum(m * np.arange(9.0).reshape(3, 3) ** 2) + np.sum(y[1:])

def arguments():
    return (np.array([0.5, 0.7, 1.1]), 3)
"""
    v, refused = np.array([0.5, 0.7, 1.1]), 0
    for source in LINES:
        loaded = load(text.format(source=source, target=target, swap=swap))
        try:
            value, _ = tg.differentiable(loaded.function, backend="python", cache=False).value_and_grad(v, 3)
            assert value == pytest.approx(loaded.function(v, 3)), source
        except tg.AliasError:
            refused += 1
        finally:
            unload(loaded)
    assert refused < len(LINES) - 1


def test_names_the_store() -> None:
    def f(x: np.ndarray) -> float:
        x = x * 1.0
        x[::2] = x[:4]
        return np.sum(x)

    with pytest.raises(tg.AliasError, match=r"element by element(.|\n)*x\[::2\] = x\[:4\](.|\n)*Store a copy"):
        tg.grad(f)(np.arange(8.0))
