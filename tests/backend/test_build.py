"""Generated text as callables: lines in tracebacks, places in the user's source, numba's options and warnings."""

from __future__ import annotations

import gc
import inspect
import linecache
import operator
import platform
import traceback
import weakref
from types import TracebackType
from typing import Any

import numpy as np
import pytest
from numba import njit

from tapegen.backend.numba.build import build_numba, build_python, decorator_text, error_line
from tapegen.backend.printer.module import emit
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import CompileLimit, Span
from tapegen.ir import passes
from tapegen.ir.nodes import Assign, Call, Const, Function, If, Load, Raise, Return, Routine, Store, Var
from tapegen.ir.passes import deep
from tapegen.ir.types import FLOAT, INT, Array

VECTOR, MATRIX = Array("float64", 1), Array("float64", 2)
a, m, i, x = Var("a", VECTOR), Var("m", MATRIX), Var("i", INT), Var("x", FLOAT)


def span(line: int) -> Span:
    return Span("heat.py", line, 4, line, 20)


def march(decorator: str | None = None, scale: float = 2.0) -> PythonSource:
    """Refuses negative elements; scales one in place and returns it."""
    inner = Function(
        "element",
        (a, i),
        (Assign((x,), Load(a, (i,), FLOAT), span(11)), Return((x,), span(12))),
        origin=span(10),
    )
    element = Routine("element", inner)
    body = (
        Assign((x,), Call(element, (a, i)), span(2)),
        If(Call(operator.lt, (x, Const(0.0))), (Raise(ValueError, (Const("negative"),), span(4)),), (), span(3)),
        Store(a, (i,), Call(operator.mul, (Const(scale), x)), origin=span(5)),
        Return((Load(a, (i,), FLOAT),), span(6)),
    )
    march = Function("march", (a, i), body, origin=span(1), doc=("Scale.",))
    return emit(march, decorator=decorator, routines={element: inner})


CHECKED = 'njit(error_model="numpy", boundscheck=True)'
BUILDS = [
    pytest.param(lambda: (build_python(march()), march()), id="python"),
    pytest.param(lambda: (build_numba(march(CHECKED)), march(CHECKED)), id="numba", marks=pytest.mark.compiled),
    pytest.param(lambda: (build_numba(march()), march()), id="numba-undecorated", marks=pytest.mark.compiled),
]


def place(source: PythonSource, found: TracebackType | None) -> Span | None:
    """The place in the user's source behind an error."""
    return source.origin(error_line(source, found))


@pytest.mark.parametrize("build", BUILDS)
def test_values_and_errors_with_their_place(build: Any) -> None:
    run, source = build()
    values = np.array([1.0, -1.0, 3.0])
    assert run(values, 2) == 6.0
    assert values.tolist() == [1.0, -1.0, 6.0]
    with pytest.raises(ValueError, match="negative") as raised:
        run(values, 1)
    assert place(source, raised.value.__traceback__) == span(4)
    with pytest.raises(IndexError) as out_of_bounds:
        run(values, 3)
    assert place(source, out_of_bounds.value.__traceback__) == span(11)
    shown = "".join(traceback.format_exception(out_of_bounds.value))
    assert "x = a[i]" in shown
    assert source.file_name in shown
    assert run(values, 2) == 12.0


def test_an_error_elsewhere_has_no_place() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    assert place(march(), caught.value.__traceback__) is None
    assert place(march(), None) is None


def test_lines_can_be_shown() -> None:
    source = march()
    run = build_python(source)
    assert inspect.getsource(run).startswith('def march(a, i):\n    """Scale."""\n')
    assert linecache.getline(source.file_name, 1) == source.text.splitlines(True)[0]
    linecache.checkcache()
    assert linecache.getlines(source.file_name) == source.text.splitlines(True)


@pytest.mark.compiled
def test_no_two_texts_share_a_name() -> None:
    first, second = march(decorator_text()), march(decorator_text(), scale=3.0)
    assert first.digest in first.file_name and first.file_name != second.file_name
    names = set()
    for source, expected in ((first, 2.0), (second, 3.0)):
        built = build_numba(source)
        assert built(np.ones(1), 0) == expected
        (compiled,) = built.overloads.values()
        names.add(compiled.fndesc.mangled_name)
    assert len(names) == 2


@pytest.mark.compiled
def test_compiled_functions_can_be_called_from_compiled_code() -> None:
    built = build_numba(march(decorator_text()))

    @njit
    def twice(values: Any) -> Any:
        return built(values, 0) + built(values, 1)

    assert twice(np.array([1.0, 2.0])) == 6.0


def test_options_are_written_in_the_text_or_given_once() -> None:
    assert decorator_text() == 'njit(error_model="numpy")'
    assert decorator_text(fastmath=True) == 'njit(error_model="numpy", fastmath=True)'
    with pytest.raises(ValueError, match="says itself how it is compiled"):
        build_numba(march(decorator_text()), boundscheck=False)
    options = [
        build_numba(march(), boundscheck=False, fastmath=True).targetoptions,
        build_numba(march()).targetoptions,
    ]
    assert [option["boundscheck"] for option in options] == [False, True]
    assert [bool(option.get("fastmath")) for option in options] == [True, False]
    assert {option["error_model"] for option in options} == {"numpy"}


@pytest.mark.compiled
def test_division_follows_numpy() -> None:
    program = Function("f", (x,), (Return((Call(operator.truediv, (Const(1.0), x)),)),))
    assert build_numba(emit(program, decorator=decorator_text()))(0.0) == np.inf


@pytest.mark.compiled
def test_warnings_without_a_remedy_are_not_shown() -> None:
    product = Call(operator.matmul, (Call(np.transpose, (m,), (), MATRIX), m), (), MATRIX)
    source = emit(Function("f", (m,), (Return((product,)),)), decorator=decorator_text())
    values = np.arange(12.0).reshape(3, 4)[:, ::2]  # warnings are errors here
    np.testing.assert_array_equal(build_numba(source)(values), values.T @ values)


@pytest.mark.compiled
def test_an_error_inside_code_of_numba_s_own_has_no_place() -> None:
    solved = Call(np.linalg.solve, (m, a), (), VECTOR)
    source = emit(Function("f", (m, a), (Return((solved,), span(2)),)), decorator=decorator_text())
    with pytest.raises(np.linalg.LinAlgError) as caught:
        build_numba(source)(np.zeros((2, 2)), np.ones(2))
    assert place(source, caught.value.__traceback__) is None


def test_text_beyond_python_s_parser_is_refused() -> None:
    text = "def f(x):\n    return " + " + ".join(["x"] * 20_000) + "\n"
    with pytest.raises(CompileLimit, match="too large for Python's compiler"):
        build_python(PythonSource(text, "f", ("f",)))


@pytest.mark.compiled
def test_many_blocks_do_not_exhaust_the_stack() -> None:
    """Compiling recurses from block to block; a function may have more of them than Python usually recurses."""
    lines = "".join(f"    if x > {k}.5:\n        print(x)\n" for k in range(600))
    text = f"def many(x):\n    y = x\n    if x < 0.0:\n        y = 2.0 * x\n{lines}    return y\n"
    assert build_numba(PythonSource(text, "many", ("many",)))(-3.0) == -6.0


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators keep memory by themselves")
def test_names_of_two_types_compile_as_well() -> None:
    text = "def f(a):\n    x = 2.0\n    y = x * a[0]\n    x = np.zeros(3)\n    return y + x[0]\n"
    source = PythonSource(f"@njit\n{text}", "f", ("f",), {"np": np, "njit": njit}, decorator="njit")
    assert build_numba(source, from_start=True)(np.array([1.5])) == 3.0


def test_collections_of_garbage_are_as_before_after_a_derivative() -> None:
    usual = gc.get_threshold()
    with deep():
        assert gc.get_threshold() > usual
    assert gc.get_threshold() == usual
    gc.set_threshold(0)  # the user wants none
    try:
        with deep():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)


def test_no_search_for_garbage_follows_a_derivative() -> None:
    gc.collect()
    before = gc.get_stats()[0]["collections"]
    with deep():
        made = [[k] for k in range(5000)]
    after = [[k] for k in range(100)]  # with 5,000 new objects one more would set off a search
    assert gc.get_stats()[0]["collections"] == before
    assert all(map(gc.is_tracked, made + after))
    assert gc.get_freeze_count() == 0


def test_garbage_of_derivatives_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    monkeypatch.setattr(passes, "PROMOTED", 10_000)
    monkeypatch.setattr(passes, "_promotions", passes._Promotions())
    alive = weakref.WeakSet[Cycle]()
    for _ in range(30):
        with deep():
            for _ in range(1000):
                alive.add(Cycle())
    assert passes._promotions.most > 0
    assert len(alive) < 29_000


def test_what_the_user_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with deep():
            pass
        assert gc.get_freeze_count() >= frozen - 100  # those that have been deleted since
    finally:
        gc.unfreeze()
