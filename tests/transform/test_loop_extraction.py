"""Loops as functions of their own: programs compute the same bits when each of their loops is called."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.ir.nodes import Function
from tapegen.pipeline.artifacts import executables
from tapegen.pipeline.artifacts.program import Program
from tapegen.transform.loop_extraction import extract_loops
from tests import program_files
from tests.oracle import leaves

PROGRAMS = [program for program in program_files.collect() if "random" not in program.name]
SAMPLED = PROGRAMS[::12]


@pytest.fixture
def extracted(monkeypatch: pytest.MonkeyPatch) -> list[Function]:
    """The loops that are extracted; they run as Python too."""
    found: list[Function] = []
    python = executables.interpreted

    def build(program: Program, function: Function) -> Callable[..., Any]:
        def of_loop(loop: Function) -> Callable[..., Any]:
            found.append(loop)
            return python(program, loop)

        return python(program, extract_loops(function, of_loop))

    monkeypatch.setattr(executables, "interpreted", build)
    return found


def run(program: program_files.Program) -> Any:
    args, kwargs = program.args(), program.kwargs()
    function = program.decorated("python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if program.is_scalar:
            return function.value_and_grad(*args, **kwargs), args
        value, pullback = function.vjp(*args, **kwargs)
        return value, pullback(value), args


def check(program: program_files.Program, extracted: list[Function], monkeypatch: pytest.MonkeyPatch) -> None:
    have = run(program)
    monkeypatch.undo()
    want = run(program)
    mine, theirs = dict(leaves(have)), dict(leaves(want))
    assert mine.keys() == theirs.keys()
    for path, value in theirs.items():
        if isinstance(value, np.ndarray | np.generic | float | int):
            assert type(mine[path]) is type(value), path
            np.testing.assert_array_equal(mine[path], value, err_msg=str(path))


@pytest.mark.parametrize("program", SAMPLED, ids=lambda program: program.name)
def test_programs(program: program_files.Program, extracted: list[Function], monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, extracted, monkeypatch)


@pytest.mark.whole
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_all_programs(
    program: program_files.Program, extracted: list[Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(program, extracted, monkeypatch)


def stencil(u: Any, k: float) -> Any:
    w, new, last = u.copy(), u.copy(), 0.0
    for _ in range(3):
        view = w[1:]
        for i in range(1, w.size - 1):
            new[i] = w[i] + k * w[i] * (w[i - 1] - 2.0 * view[i - 1] + w[i + 1])
            last = new[i]
        w, new = new, w
    while last > 0.5:
        last = 0.5 * last + 0.01 * w[0]
    return np.sum(w) * last


def test_what_loops_take_and_return(extracted: list[Function]) -> None:
    """Arrays that change places may be the same; what is read later comes back."""
    u = np.array([1.0, 2.0, 4.0, 3.0])
    assert tg.value_and_grad(stencil, backend="python")(u, 0.1)[0] == stencil(u, 0.1)
    tg.check_grads(stencil, u, 0.1, backend="python")
    first = extracted[0]
    assert [sorted(var.name for var in pair) for pair in first.shared] == [["new_0", "w_0"]]
    assert any(var.name.startswith("last") for var in first.body[-1].values)  # type: ignore[union-attr]


def test_a_loop_without_a_compiled_form_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    program = tg.differentiable(stencil, backend="python")._specialise((np.ones(4), 0.1), {}).program
    function = program.function("joint")
    assert extract_loops(function, lambda loop: None) == function
