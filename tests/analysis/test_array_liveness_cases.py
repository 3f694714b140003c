"""What is proved about loads and stores: one case for each thing that is understood."""

import textwrap

import pytest

from tapegen.analysis.memory_access import statements
from tapegen.analysis.polyhedral.array_liveness import final_loads
from tapegen.ir.nodes import Assign, Load
from tests.finality import HEAD, check, finals, traces_of
from tests.ir_text import function

CASES = {
    "later statement": ("y = a[0]; z = a[1]; a[0] = 0.5", {"y": False, "z": True}),
    "rising": (
        """
        for i in range(1, 9):
            y = a[i - 1]
            z = a[i + 1]
            a[i] = 0.5
        """,
        {"y": True, "z": False},
    ),
    "falling": (
        """
        for i in range(8, 0, -1):
            y = a[i - 1]
            z = a[i + 1]
            a[i] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "strided": (
        """
        for i in range(0, 9, 2):
            y = a[i + 1]
            z = a[i + 2]
            a[i] = 0.5
        """,
        {"y": True, "z": False},
    ),
    "unknown step": (
        """
        k = n - 5
        for i in range(0, k, k):
            y = a[i + 1]
            a[i] = 0.5
            z = b[0]
        """,
        {"y": False, "z": True},
    ),
    "every time step": (
        """
        for t in range(n):
            for i in range(1, 9):
                y = a[i - 1]
                a[i] = 0.5
        """,
        {"y": False},
    ),
    "exclusive branches": (
        """
        if n > 0:
            y = a[0]
        else:
            a[0] = 0.5
        """,
        {"y": True},
    ),
    "branches of different trips": (
        """
        for i in range(3):
            if x < 0.0:
                y = a[0]
            else:
                a[0] = 0.5
        """,
        {"y": False},
    ),
    "condition on a counter": (
        """
        for i in range(9):
            if i > 4 and x < 0.0:
                y = a[i]
            else:
                a[4 - i] = 0.5
            if not (i == 0):
                a[0] = 0.5
        """,
        {"y": False},
    ),
    "condition that keeps a write away": (
        """
        for i in range(3):
            for k in range(3):
                y = a[i]
                if k < i and not (i != 2):
                    a[k] = 0.5
        z = a[2]
        """,
        {"y": False, "z": True},
    ),
    "all but one": (
        """
        for i in range(9):
            y = a[0]
            z = a[4]
            if not (i == 4):
                a[i] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "a counter that an inner loop takes": (
        """
        for i in range(3):
            for i in range(5):
                z = b[i]
            y = a[i]
            a[4] = 0.5
        """,
        {"z": True, "y": False},
    ),
    "two loops that share a counter": (
        """
        for i in range(3):
            y = a[i]
        for i in range(3):
            z = a[i + 1]
            a[i] = 0.5
        """,
        {"y": False, "z": False},
    ),
    "either condition": (
        """
        for i in range(9):
            y = a[0]
            z = a[2]
            if i == 2 or i > 5:
                a[i] = 0.5
        """,
        {"y": True, "z": False},
    ),
    "after a break": (
        """
        for i in range(n):
            if i >= 2:
                break
            y = a[i]
        a[2] = 0.5
        """,
        {"y": True},
    ),
    "counted while": (
        """
        k = 1
        while k < n:
            y = a[k - 1]
            z = a[k + 1]
            w = a[k + 2]
            a[k] = 0.5
            k = k + 2
        """,
        {"y": True, "z": True, "w": False},
    ),
    "counted while that meets its future": (
        """
        k = 9
        while k > 0:
            y = a[k - 3]
            z = a[k + 3]
            a[k] = 0.5
            k = k - 3
        """,
        {"y": False, "z": True},
    ),
    "counter that some trips leave alone": (
        """
        k = 0
        for i in range(5):
            a[k] = 0.5
            y = a[k]
            if x < 0.0:
                k = k + 1
        """,
        {"y": False},
    ),
    "counter with two steps": (
        """
        k = 0
        for i in range(5):
            a[k] = 0.5
            y = a[k]
            if x < 0.0:
                k = k + 1
            else:
                k = k + 2
        """,
        {"y": False},
    ),
    "counter on every path": (
        """
        k = 0
        for i in range(5):
            a[k] = 0.5
            y = a[k]
            if x < 0.0:
                k = k + 1
            else:
                k = k + 1
        """,
        {"y": True},
    ),
    "integer from a branch": (
        """
        j = 1 if n > 1 else 2
        y = a[1]
        z = a[2]
        w = a[3]
        a[j] = 0.5
        """,
        {"y": False, "z": False, "w": True},
    ),
    "joined integer": (
        """
        if x < 0.0:
            j = 1
        else:
            j = 2
        y = a[j]
        z = a[j + 1]
        w = a[3]
        a[j + 1] = 0.5
        """,
        {"y": True, "z": False, "w": False},
    ),
    "what a loop leaves in an integer": (
        """
        for i in range(3):
            j = i + 1
            y = a[j]
        z = a[j]
        w = a[2]
        if j > 0:
            a[j + 1] = 0.5
        """,
        {"y": False, "z": True, "w": False},
    ),
    "integer that only run time knows": (
        """
        k = p[0]
        y = a[k]
        if k >= 0:
            z = a[k + 1]
            a[k] = 0.5
        w = a[k + 1]
        a[k] = 0.5
        """,
        {"k": True, "y": False, "z": True, "w": False},  # -1 and 0 are one element of an array of one
    ),
    "gather and scatter": (
        """
        for i in range(3):
            k = p[i]
            y = a[k]
            b[k] += 0.5
            z = b[0]
        """,
        {"k": True, "y": True, "z": False},
    ),
    "quotient and remainder": (
        """
        for i in range(9):
            y = a[i // 2]
            a[i % 3 + 5] = 0.5
        z = a[4]
        a[3] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "least and largest": (
        """
        for i in range(9):
            y = a[max(i, 3)]
            a[min(i, 2)] = 0.5
            z = a[min(i, 3)]
        """,
        {"y": True, "z": False},
    ),
    "negative index": (
        """
        y = a[-1]
        a[a.shape[0] - 1] = 0.5
        z = a[-2]
        a[n - 1] = 0.5
        """,
        {"y": False, "z": False},
    ),
    "row and column": (
        """
        for i in range(5):
            v = m[i, :]
            w = m[:, i]
            y = v[i]
            z = w[i + 1]
            m[i, i + 1] = 0.5
        """,
        {"v": False, "w": True, "y": True, "z": True},
    ),
    "slices": (
        """
        v = a[2:7]
        w = a[::-1]
        y = v[0]
        z = v[4]
        k = a[1]
        a[:2] = 0.5
        a[6:2:-2] = 0.5
        """,
        {"v": False, "w": False, "y": True, "z": False, "k": False},
    ),
    "store through a slice with a step": (
        """
        v = a[1:9:3]
        y = a[4]
        z = a[5]
        v[1] = 0.5
        """,
        {"v": False, "y": False, "z": True},
    ),
    "transposed": (
        """
        v = m.T
        y = v[0, 1]
        z = v[1, 0]
        m[1, 0] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "reversed": (
        """
        u = np.zeros(4)
        v = np.flip(u)
        y = v[0]
        z = v[1]
        u[3] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "reshaped": (
        """
        v = np.ravel(m)
        y = m[0, 0]
        z = v[3]
        v[2] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "another shape in each trip": (
        """
        for i in range(5):
            t = a[i:]
            v = np.ravel(t)
            y = v[1]
            v[0] = 0.5
        """,
        {"t": False, "y": False},
    ),
    "two shapes of one array": (
        """
        v = np.reshape(m, 196)
        w = np.ravel(m)
        y = v[3]
        w[2] = 0.5
        """,
        {"y": False},
    ),
    "copy that looks like a view": (
        """
        t = m.T
        for i in range(2):
            r = np.ravel(t)
            if i == 1:
                m[1, 0] = 0.5
                y = r[1]
        """,
        {"y": False},
    ),
    "view made in a loop": (
        """
        for i in range(2):
            r = m[i]
            r[0] = 0.5
            y = r[0]
        """,
        {"r": False, "y": True},
    ),
    "either of two": (
        """
        c = a if x < 0.0 else b
        d = c if n > 1 else b
        y = a[0]
        z = a[1]
        d[0] = 0.5
        """,
        {"y": False, "z": True},
    ),
    "either whole or part": (
        """
        v = a[1:]
        if x < 0.0:
            c = a
        else:
            c = v
        y = a[1]
        c[0] = 0.5
        """,
        {"v": False, "y": False},
    ),
    "fresh place for each trip": (
        """
        for i in range(3):
            u = np.zeros(3)
            e = np.exp(a)
            u[0] = 0.5
            y = u[0]
            z = e[0]
        """,
        {"y": False, "z": True},  # the elements of u stay, but its name goes on to the next place
    ),
    "swapped buffers": (
        """
        u = np.zeros_like(a)
        v = np.zeros_like(a)
        for i in range(3):
            y = u[0]
            v[0] = 0.5
            u, v = v, u
        z = u[0]
        """,
        {"y": False, "z": True},
    ),
    "whole arrays": ("y = a[0]; z = b[0]; a += 0.5", {"y": False, "z": True}),
    "index array": ("y = a[0]; a[p] = 0.5", {"y": False}),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    body, expected = CASES[name]
    text = HEAD + textwrap.indent(textwrap.dedent(body.replace("; ", "\n")), "    ")
    assert finals(text) == expected
    program = function(text)
    check(program, traces_of(program, (0, 1, 4, 7), (0, 1)))


def test_of_elements_that_stay_a_fresh_place_per_trip_may_be_kept_by_reference():
    program = function(HEAD + textwrap.indent(textwrap.dedent(CASES["fresh place for each trip"][0]), "    "))
    finality = final_loads(program)
    read = next(
        stmt for stmt, _ in statements(program.body) if isinstance(stmt, Assign) and stmt.targets[0].name == "y"
    )
    assert isinstance(read.value, Load)
    assert finality.contents_final(read, read.value.array, read.value.index)
