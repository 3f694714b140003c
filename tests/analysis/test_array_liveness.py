"""Array liveness, parallel loops and bounds: proved for the kernels that need them, never where a run refutes them."""

import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings

from tapegen.analysis.memory_access import statements
from tapegen.analysis.polyhedral.array_liveness import final_loads
from tapegen.ir.nodes import Assign, Call, Var
from tests.finality import HEAD, check, finals, kept, loads, loops, stores, traces_of
from tests.ir_random import programs
from tests.ir_text import function
from tests.ir_trace import Trace

# ---- kernels ---------------------------------------------------------------------------------------------------------

CHOLESKY = """
def cholesky(a: A2):
    n = a.shape[0]
    for j in range(n):
        for k in range(j):
            t = a[j, k]
            t_1 = t * t
            t_2 = -t_1
            a[j, j] += t_2
        t_3 = a[j, j]
        t_4 = np.sqrt(t_3)
        a[j, j] = t_4
        for i in range(j + 1, n):
            for k_1 in range(j):
                t_5 = a[i, k_1]
                t_6 = a[j, k_1]
                t_7 = t_5 * t_6
                t_8 = -t_7
                a[i, j] += t_8
            t_9 = a[i, j]
            t_10 = a[j, j]
            t_11 = t_9 / t_10
            a[i, j] = t_11
"""

LU = """
def lu(a: A2):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            t = a[i, k]
            t_1 = a[k, k]
            t_2 = t / t_1
            a[i, k] = t_2
            for j in range(k + 1, n):
                t_3 = a[i, k]
                t_4 = a[k, j]
                t_5 = t_3 * t_4
                t_6 = -t_5
                a[i, j] += t_6
"""

TRISOLV = """
def trisolv(l: A2, x: A1, b: A1):
    n = l.shape[0]
    for i in range(n):
        v = l[i, :i]
        w = x[:i]
        t = np.dot(v, w)
        t_1 = b[i]
        t_2 = t_1 - t
        t_3 = l[i, i]
        t_4 = t_2 / t_3
        x[i] = t_4
"""

GRAMSCHMIDT = """
def gramschmidt(a: A2, r: A2):
    m = a.shape[1]
    for k in range(m):
        q = a[:, k]
        t = np.dot(q, q)
        t_1 = np.sqrt(t)
        r[k, k] = t_1
        t_2 = q / t_1
        a[:, k] = t_2
        for j in range(k + 1, m):
            q_1 = a[:, k]
            p = a[:, j]
            t_3 = np.dot(q_1, p)
            t_4 = t_3 * q_1
            t_5 = -t_4
            a[:, j] += t_5
"""

TIME_LOOP = """
def time_loop(u: A1, s: A2, n: I):
    for t in range(n):
        for i in range(1, u.shape[0] - 1):
            x = u[i - 1]
            y = x * x
            s[t, i] = y
        for i_1 in range(1, u.shape[0] - 1):
            z = s[t, i_1]
            z_1 = z * z
            u[i_1] = z_1
"""


def test_cholesky_in_place_overwrites_only_what_its_adjoint_does_not_read():
    """The adjoint reads the factors, the root as its own result, and the quotient as its own result."""
    assert finals(CHOLESKY) == {"t": True, "t_3": False, "t_5": True, "t_6": True, "t_9": False, "t_10": True}
    assert kept(CHOLESKY) == [False, True, False, True]


def test_lu_in_place():
    assert finals(LU) == {"t": False, "t_1": True, "t_3": True, "t_4": True}
    assert kept(LU) == [True, False]


def test_trisolv_is_final_throughout():
    assert all(finals(TRISOLV).values())
    program = function(TRISOLV)
    finality = final_loads(program)
    product = next(
        stmt for stmt, _ in statements(program.body) if isinstance(stmt, Assign) and stmt.targets[0].name == "t"
    )
    assert isinstance(product.value, Call)
    assert all(finality.is_final(product, operand, ()) for operand in product.value.args if isinstance(operand, Var))
    assert kept(TRISOLV) == [True]


def test_gramschmidt_keeps_the_columns_that_are_done():
    assert finals(GRAMSCHMIDT) == {"q": False, "q_1": True, "p": False}
    assert kept(GRAMSCHMIDT) == [True, True, False]


def test_time_loop_keeps_what_each_step_writes_to_its_own_row():
    assert finals(TIME_LOOP) == {"x": False, "z": True}


@pytest.mark.parametrize("text", [CHOLESKY, LU, TRISOLV, GRAMSCHMIDT, TIME_LOOP])
def test_kernels_agree_with_their_runs(text):
    program = function(text)
    traces = []
    for size in (1, 2, 5):
        arguments = {p.name: np.zeros((size,) * getattr(p.type, "rank", 0)) for p in program.params}
        traces.append(Trace(program, {**arguments, "n": size} if "n" in arguments else arguments))
    proved, true = check(program, traces)
    assert proved == true


# ---- values, names, loops and bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = np.sqrt(x); a[n] = y", True),
        ("y = np.sqrt(x); a[n] += y", False),
        ("y = np.sqrt(x); a[n] = y; a[0] = x", False),
        ("y = np.sqrt(x); a[n] = y; b[0] = x", True),
        ("for i in range(9):; .y = b[i]; .a[i] = y", True),
        ("for i in range(9):; .y = b[i]; .a[i] = y; .a[i - 1] = x", False),
        ("for i in range(9):; .y = b[i]; .a[0] = y", False),
        ("for i in range(9):; .y = b[i]; .if x < 0.0:; ..a[i] = y", False),
        ("for i in range(9):; .y = b[i]; .if x < 0.0:; ..break; .a[i] = y", False),
        ("for i in range(9):; .y = b[i]; a[0] = y", False),
        ("for i in range(9):; .y = b[i]; .m[i] = y", False),
        ("for i in range(9):; .y = m[:, i]; .m[:, i + 1] = y", False),  # the definition makes a view
        ("for i in range(9):; .v = m[:, i]; .y = np.sqrt(v); .m[:, i] = y", True),
        ("for i in range(9):; .v = m[:, i]; .y = np.sqrt(v); .m[i, :] = y", False),
        ("for i in range(9):; .v = m[:, i]; .y = np.sqrt(v); .m[:, i] = y; .y[0] = x", False),
        ("y = np.sqrt(a); b[:] = y", False),  # a may have size 1
        ("y = np.sqrt(a); a[:] = y", True),
        ("y = np.sqrt(a); c = np.zeros_like(a); c[p] = y", False),
        ("y = p[0]; a[0] = y", False),  # converted
    ],
)
def test_values_that_a_store_keeps(body, expected):
    lines = [part.replace(".", "    ", len(part) - len(part.lstrip("."))) for part in body.split("; ")]
    program = function(HEAD + textwrap.indent("\n".join(lines), "    "))
    (var,) = {
        target
        for stmt, _ in statements(program.body)
        if isinstance(stmt, Assign)
        for target in stmt.targets
        if target.name == "y"
    }
    finality = final_loads(program)
    load = finality.unmodified_element(var)
    assert (load is not None) is expected
    if load is not None:
        assert any((store.array, store.index) == (load.array, load.index) for store in stores(program))


def test_names_that_still_hold_their_value():
    program = function(
        """
        def f(a: A1, n: I):
            k = n + 1
            s = 0
            for i in range(n):
                j = i + k
                y = a[j]
                s = s + 1
            z = a[s]
            for i in range(n):
                w = a[i]
        """
    )
    finality = final_loads(program)
    where = {stmt.targets[0].name: stmt for stmt, _ in statements(program.body) if isinstance(stmt, Assign)}
    loop, _ = loops(program)
    names = {target.name: target for stmt in where.values() for target in stmt.targets} | {
        "i": loop.target,
        "n": program.params[1],
    }
    seen = {
        (name, at): finality.value_available(names[name], where[at])
        for at in ("y", "z")
        for name in ("n", "k", "i", "j", "s")
    }
    assert {key for key, answer in seen.items() if not answer} == {("j", "y"), ("s", "y"), ("i", "z")}


def test_lists_are_final_when_nothing_changes_them_later():
    program = function(
        """
        def f(n: I, x: F):
            path = new_list()
            for i in range(n):
                append(path, x)
                y = item(path, i)
            z = item(path, 0)
        """
    )
    finality = final_loads(program)
    answers = [
        finality.is_final(stmt, array, index) for stmt, array, index in loads(program) if isinstance(stmt, Assign)
    ]
    assert answers == [False, True]


def test_without_the_integer_set_library_only_what_nothing_writes_later_is_final(monkeypatch):
    monkeypatch.setitem(sys.modules, "islpy", None)
    assert finals(CHOLESKY) == dict.fromkeys(["t", "t_3", "t_5", "t_6", "t_9", "t_10"], False)
    assert finals(HEAD + "    y = a[0]\n    b[0] = 0.5\n    z = b[0]") == {"y": True, "z": True}


def test_too_hard_a_question_is_no_proof():
    program = function(CHOLESKY)
    finality = final_loads(program)
    finality.solver.operations = 20
    assert not any(finality.is_final(stmt, array, index) for stmt, array, index in loads(program) if index)


def test_huge_numbers_are_no_proof():
    text = HEAD + "    for i in range(3):\n        y = a[i * 99999999999999999999]\n        a[i] = 0.5"
    assert finals(text) == {"y": False}


def test_a_statement_of_another_program_proves_nothing():
    program, other = function(TIME_LOOP), function(TIME_LOOP)
    finality = final_loads(program)
    assert not any(finality.is_final(stmt, array, index) for stmt, array, index in loads(other))


# ---- random programs -------------------------------------------------------------------------------------------------


@given(programs())
@settings(max_examples=150, deadline=None)
def test_no_proof_is_refuted_by_a_run(text):
    program = function(text)
    check(program, traces_of(program, (0, 1, 3), (0, 1)))


@given(programs(exact=True))
@settings(max_examples=150, deadline=None)
def test_linear_programs_are_decided_exactly(text):
    program = function(text)
    trace = Trace(program, {})
    proved, true = check(program, [trace])
    assert proved == true or trace.raised
