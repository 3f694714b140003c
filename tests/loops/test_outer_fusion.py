"""Loops around loops put together, and arrays of which each iteration keeps a row: the same numbers, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.loops.locality.array_contraction import contract_arrays
from tests import nests_reader
from tests.nests_reader import assert_same, lowered_text, read
from tests.oracle import numerical_gradient

R = np.random.default_rng(11)


def matrix(*shape: int) -> np.ndarray:
    return R.random(shape) + 0.2


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops run in CPython, which checks the bounds of every access."""
    monkeypatch.setattr(nests_reader, "compiled", nests_reader.uncompiled)


def outermost(text: str) -> int:
    """The number of loops that are in no other loop."""
    return sum(line.startswith("    for ") for line in text.splitlines())


GAPS = """
def f(x, y):
    gaps = x[:, None, :] - y[None, :, :]
    squares = np.sum(gaps*gaps, axis=2)
    least = np.min(squares, axis=1)
    shares = squares/least[:, None]
    return np.sum(np.sum(shares[:, :, None]*gaps, axis=1)**2), least
"""

SUNK = """
def f(x, y):
    d = np.empty((x.shape[0], x.shape[1]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            d[i, j] = x[i, j] - y[j, i]
    h = np.empty(x.shape[0])
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            h[j] = y[i, j]
    s = 0.0
    for i in range(x.shape[0]):
        t = 0.0
        for j in range(x.shape[1]):
            t = t + d[i, j]*d[i, j]
        s = s + h[i]*t
    return s
"""

PRECISIONS = """
def f(x, n):
    a = np.empty((x.shape[0], x.shape[1]), np.float32)
    b = np.empty((x.shape[0], 1), np.int64)
    c = np.empty(x.shape[0], np.float32)
    r = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            a[i, j] = x[i, j]*1.1
        b[i, 0] = i*n
        for j in range(x.shape[1]):
            b[i, 0] += j
        c[i] = x[i, 0]*1.1
        c[i] += a[i, x.shape[1] - 1]
        r[i] = b[i, 0]
        r[i] += c[i]
        for j in range(a.shape[1]):
            r[i] += a[i, j]*x[i, j]
    return r
"""


def test_reductions_along_axes_need_no_array_of_all_elements() -> None:
    text = lowered_text(GAPS, matrix(4, 3), matrix(5, 3))
    assert outermost(text) == 1
    assert ", x_n0" not in text
    assert text.count("np.empty((") == 1  # a row of `gaps`


def test_a_loop_may_sink_to_the_one_that_reads_its_rows() -> None:
    text = lowered_text(SUNK, matrix(4, 4), matrix(4, 4))
    assert outermost(text) == 2
    assert "np.empty((" not in text


@pytest.mark.usefixtures("either_way")
def test_numbers_stay() -> None:
    assert_same(GAPS, *((matrix(n, k), matrix(m, k)) for n, m, k in ((4, 3, 2), (2, 5, 4), (0, 2, 3), (3, 2, 0))))
    assert_same(SUNK, *((matrix(n, n), matrix(n, n)) for n in (2, 3, 5)))
    assert_same(PRECISIONS, *((matrix(n, m), n) for n, m in ((4, 3), (2, 5), (3, 2))))


# ---- loops that stay apart -------------------------------------------------------------------------------------------

APART: dict[str, str] = {
    "another row": """
def f(x, z, n):
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
    s = 0.0
    for i in range(n):
        t = 0.0
        for j in range(n):
            t = t + z[n - 1 - i, j]
        s = 0.5*s + t
    return s
""",
    "columns": """
def f(x, z, n):
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
    s = 0.0
    for i in range(n):
        t = 0.0
        for j in range(n):
            t = t + z[j, i]
        s = 0.5*s + t
    return s
""",
    "a sum": """
def f(x, z, n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
            s = s + z[i, j]
    r = np.empty(n)
    for i in range(n):
        t = 0.0
        for j in range(n):
            t = t + s*z[i, j]
        r[i] = t
    return r
""",
    "a scalar that lasts": """
def f(x, z, n):
    last = 0.0
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
            last = z[i, j]
    for i in range(n):
        for j in range(n - i):
            z[i, j] = z[i, j] + 1.0
            if j > 1:
                last = z[i, j]
    return last, z
""",
    "a counter that lasts": """
def f(x, z, n):
    j = 0
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
    s = 0.0
    for i in range(n):
        for k in range(n - i):
            s = s + z[i, k]
    return s*i*j
""",
    "a loop between": """
def f(x, z, n):
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
    for i in range(n):
        for j in range(n):
            x[j, i] = z[i, j]
    s = 0.0
    for i in range(n):
        t = 0.0
        for j in range(n):
            t = t + z[i, j]*x[i, j]
        s = 0.5*s + t
    return s
""",
    "an error between": """
def f(x, z, n):
    for i in range(n):
        for j in range(n):
            z[i, j] = x[i, j]*2.0
    s = 0.0
    for i in range(n):
        if x[0, i] < 0.0:
            raise ValueError("negative")
        for j in range(n):
            s = s + z[i, j]
    return s
""",
}


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_loops_with_other_dependences_stay_apart(text: str) -> None:
    assert outermost(lowered_text(text, matrix(4, 4), matrix(4, 4), 4)) >= 2
    assert_same(text, *((matrix(n, n), matrix(n, n), n) for n in (4, 1, 5)))


# ---- arrays that keep their axes -------------------------------------------------------------------------------------

KEPT: dict[str, str] = {
    "from an earlier run of the loop": """
def f(x, n):
    z = np.empty((x.shape[0], x.shape[1]))
    s = 0.0
    for k in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if k == 0:
                    z[i, j] = 0.0
                z[i, j] += x[i, j]
            for j in range(x.shape[1] - 1):
                s = 0.5*s + z[i, j]*z[i, j + 1]
    return s
""",
    "read after the loop": """
def f(x, n):
    z = np.empty((x.shape[0], x.shape[1]))
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = x[i, j]
        for j in range(x.shape[1] - 1):
            s = 0.5*s + z[i, j]*z[i, j + 1]
    return s*z[1, n]
""",
    "another row": """
def f(x, n):
    z = np.empty((x.shape[0], x.shape[1]))
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = x[i, j]
        for j in range(x.shape[1] - 1):
            s = 0.5*s + z[i, j]*z[max(i - 1, 0), j + 1]
    return s
""",
    "a size that changes": """
def f(x, n):
    s = 0.0
    m = 2
    z = np.empty((x.shape[0], m))
    m = n
    for i in range(x.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = x[i, j]
        for j in range(z.shape[1] - 1):
            s = 0.5*s + z[i, j]*z[i, j + 1] + m
    return s
""",
}


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_arrays_that_are_read_elsewhere_keep_their_axes(text: str) -> None:
    text_after = lowered_text(text, matrix(4, 3), 2)
    assert "z = np.empty((" in text_after or "z = np.empty(x.shape)" in text_after
    assert_same(text, *((matrix(n, m), k) for n, m, k in ((4, 3, 2), (2, 4, 3), (3, 3, 1))))


def test_a_size_that_changes_is_not_read_later() -> None:
    """In a whole program the sizes are read in front of the loop, so that this array stays for another reason."""
    program = read(KEPT["a size that changes"], (matrix(4, 3), 2))
    assert contract_arrays(program) is program
    unchanged = read(KEPT["a size that changes"].replace("m = n", "k = n"), (matrix(4, 3), 2))
    assert contract_arrays(unchanged) is not unchanged
    parameter = KEPT["a size that changes"].replace("def f(x, n):", "def f(x, n, m):").replace("    m = 2\n", "")
    program = read(parameter, (matrix(4, 3), 3, 2))
    assert contract_arrays(program) is program


# ---- gradients -------------------------------------------------------------------------------------------------------


def pulls(p: Any, w: Any) -> Any:
    d = p[None, :, :] - p[:, None, :]
    r = np.sum(d * d, axis=2) + 0.1
    return np.sum(np.sum(w[None, :, None] * d / (r * np.sqrt(r))[:, :, None], axis=1) ** 2)


def scores(x: Any, k: Any, v: Any) -> Any:
    logits = np.sum(x[:, None, :] * k[None, :, :], axis=-1)
    weights = np.exp(logits - np.max(logits, axis=1)[:, None])
    weights = weights / np.sum(weights, axis=1, keepdims=True)
    return np.sum(np.sum(weights[:, :, None] * v[None, :, :], axis=1) ** 2)


def centred(x: Any, y: Any) -> Any:
    z = x - x.mean(axis=1)[:, None]
    return np.sum(np.sqrt(np.sum(z**2, axis=(0, 2)) + 1.0) * y)


@pytest.mark.parametrize(
    ("f", "args", "parallel"),
    [
        (pulls, (matrix(5, 3), matrix(5)), True),
        (scores, (matrix(4, 3), matrix(5, 3), matrix(5, 2)), False),
        (centred, (matrix(3, 4, 2), matrix(4)), False),
    ],
)
def test_gradients_of_sums_along_axes(f: Any, args: tuple[np.ndarray, ...], parallel: bool) -> None:
    every = tuple(range(len(args)))
    found = tg.differentiable(wrt=every, backend="numba", parallel=parallel)(f).grad(*args)
    wanted = numerical_gradient(f, args, paths=[(k,) for k in every])
    for k, part in enumerate(found):
        np.testing.assert_allclose(part, wanted.value[(k,)], rtol=1e-6, atol=1e-8)
