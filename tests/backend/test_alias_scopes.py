"""What compiled code is told of arrays that share no memory: never more than is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen.backend.numba.build import build_numba, build_python
from tapegen.backend.printer.source import PythonSource

HEAD = "import numpy as np\nfrom numba import njit\n\n"
R = np.random.default_rng(31)

APART = """
def f(a, b, n):
    c = np.empty(n)
    d = a.copy()
    for i in range(n):
        c[i] = a[i]*2.0
        b[i] += c[i]
        d[i] += b[i]
    return c, d
"""

SHARED = """
def f(a, b, n):
    c = a[1:]
    for i in range(n - 1):
        a[i + 1] += b[i]
        c[i] *= 2.0
        b[i] = a[i + 1]
    d = a
    e = d.reshape((n, 1))
    for i in range(n - 1):
        a[i] = e[i + 1, 0]
        d[i] += a[i]
        e[i, 0] += d[i]*0.5
    return d, e
"""

EXCHANGED = """
def f(a, b, n):
    x = a
    y = b
    for k in range(4):
        for i in range(1, n):
            x[i] = y[i - 1] + x[i - 1]
            a[i] += 1.0
        x, y = y, x
        if k % 2 == 1:
            z = x
        else:
            z = np.zeros(n)
        for i in range(n):
            z[i] += 0.5
            x[i] += z[i]
    return x, y, z
"""

IN_TUPLES = """
def f(a, b, n):
    both = (a, b)
    for k in range(2):
        c = both[0]
        for i in range(1, n):
            c[i] = a[i - 1] + c[i]
            both[1][i] += c[i]
            b[i - 1] *= both[1][i]
    rows = np.zeros((3, n))
    for k in range(3):
        row = rows[k]
        for i in range(n):
            row[i] = a[i]
            rows[k, n - 1 - i] += row[i]
    t = rows.T
    for i in range(n):
        t[i, 0] += rows[0, i]
        rows[1, i] = t[i, 0]
    return rows, t
"""

MADE_ANEW = """
def f(a, b, n):
    tape = np.empty(1)
    top = 0
    total = 0.0
    for k in range(n):
        t = np.empty(n)
        for i in range(n):
            t[i] = a[i] + k
        u = np.empty(n)
        for i in range(n):
            u[i] = t[i]*b[i]
        if top == tape.shape[0]:
            longer = np.empty(2*top)
            for i in range(top):
                longer[i] = tape[i]
            tape = longer
        tape[top] = u[k] + t[0]
        top += 1
        total += tape[top - 1]
    return total, tape[:top]
"""


def both(text: str, *args: Any) -> tuple[str, list[Any], list[Any]]:
    """Optimized code of numba, and the values and arguments after compiled and plain runs."""
    decorated = HEAD + "@njit(error_model='numpy')\n" + text.strip() + "\n"
    compiled = build_numba(PythonSource(decorated, "f", ("f",), decorator="njit"), from_start=True)
    plain = build_python(PythonSource(HEAD + text, "f", ("f",)))
    found = []
    for func in (compiled, plain):
        own = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        found.append([*func(*own), *own])
    return next(iter(compiled.inspect_llvm().values())), *found


@pytest.mark.parametrize("text", [APART, SHARED, EXCHANGED, IN_TUPLES, MADE_ANEW])
def test_the_same_numbers(text: str) -> None:
    for n in (37, 2):
        _, ours, theirs = both(text, R.random(n), R.random(n), n)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_said() -> None:
    """Four arrays that are apart; four names for one array, and one that is apart."""
    for text, names in ((APART, {"a", "b", "c", "d"}), (EXCHANGED, set())):
        code, _, _ = both(text, R.random(5), R.random(5), 5)
        said = {
            line.split('!{!"')[1].split(" ")[0]
            for line in code.splitlines()
            if "arrays" not in line and " of _Z" in line
        }
        assert said == names
