"""Every program under `tests/programs` (`tests/program_files.py`) against plain Python and numerical gradients."""

from __future__ import annotations

import contextlib
import inspect
import pathlib
import re
import warnings
from typing import Any

import numba
import numpy as np
import pytest

from tapegen.errors import (
    BadArgument,
    PerformanceWarning,
    TapegenError,
)
from tests.oracle import floating, leaves
from tests.program_files import Program, collect

PROGRAMS = collect()

# Programs that plain Python runs and tapegen refuses, with the error and the construct that it points at.  Each is
# a promise to be kept: when one is differentiated its line goes, and the program is judged like all others.
REFUSED: dict[str, tuple[type[TapegenError], str]] = {}
ACCEPTED = [program for program in PROGRAMS if program.name not in REFUSED]


def each(programs: list[Program]) -> Any:
    return pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in programs])


def assert_same(actual: Any, expected: Any, what: str, rtol: float = 0.0) -> None:
    """Both structures hold the same numbers, of the same dtype and shape; bit for bit unless `rtol` is given."""
    have, want = dict(leaves(actual)), dict(leaves(expected))
    assert have.keys() == want.keys(), f"{what}: structure"
    for path, leaf in want.items():
        if not isinstance(leaf, np.ndarray | np.generic | float | int):
            continue
        mine = have[path]
        assert np.asarray(mine).dtype == np.asarray(leaf).dtype, f"{what} {path}: dtype"
        assert np.shape(mine) == np.shape(leaf), f"{what} {path}: shape"
        if rtol and np.asarray(leaf).dtype.kind == "f":
            rtol = max(rtol, 8 * float(np.finfo(np.asarray(leaf).dtype).eps))
            scale = float(np.max(np.abs(leaf), initial=0.0, where=np.isfinite(leaf)))
            np.testing.assert_allclose(mine, leaf, rtol=rtol, atol=rtol * scale, err_msg=f"{what} {path}")
        else:
            np.testing.assert_array_equal(mine, leaf, err_msg=f"{what} {path}")


def assert_gradient(program: Program, gradient: tuple) -> None:
    """The gradient has the structure, dtype and shape of its source and agrees with differences."""
    estimate, tol, args = program.estimate, program.tol, program.args()
    assert isinstance(gradient, tuple)
    assert len(gradient) == len(program.wrt)
    for position, part in zip(program.positions(), gradient, strict=True):
        source, mine = dict(leaves(args[position])), dict(leaves(part))
        for inner in floating(args[position]):
            path = (position, *inner)
            want, doubt = estimate.value[path], estimate.error[path]
            have = np.asarray(mine[inner])
            assert have.dtype == np.asarray(source[inner]).dtype, f"gradient {path}: dtype"
            assert have.shape == want.shape, f"gradient {path}: shape"
            scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
            assert np.all(doubt <= 10 * tol * scale), f"the differences themselves are unsure at {path}: {doubt}"
            np.testing.assert_allclose(have, want, rtol=0, atol=tol * scale, err_msg=f"gradient {path}")


@each([program for program in PROGRAMS if program.name in REFUSED])
def test_refused_before_any_number(program: Program) -> None:
    kind, construct = REFUSED[program.name]
    with pytest.raises(kind) as caught:
        program.decorated("python").vjp(*program.args(), **program.kwargs())
    refusal = caught.value
    assert isinstance(refusal, TapegenError)
    assert refusal.reason
    assert refusal.advice
    span = refusal.span
    assert span is not None
    assert span.file == inspect.getsourcefile(program.function)
    assert span.text() == construct
    # the caret stands under the construct, in a line of this very function or of one that it calls
    line = pathlib.Path(span.file).read_text(encoding="utf-8").splitlines()[span.line - 1]
    assert line[span.column :].startswith(construct)
    _, shown, carets, *_ = str(refusal).splitlines()
    assert shown[carets.index("^") : carets.rindex("^") + 1] == construct
    assert str(refusal).startswith(f"{span.file}:{span.line}:{span.column + 1}: {refusal.reason}")
    quoted = set(re.findall(r"'(\w+)'", refusal.reason))
    assert quoted <= set(re.findall(r"\w+", pathlib.Path(span.file).read_text(encoding="utf-8"))), "the user's names"


def test_refusals_name_programs() -> None:
    assert REFUSED.keys() <= {program.name for program in PROGRAMS}


@each(ACCEPTED)
def test_pullback_agrees_with_differences(program: Program) -> None:
    want, left = program.plain
    args = program.args()
    value, pullback = program.decorated("python").vjp(*args, **program.kwargs())
    assert_same(value, want, "value")
    assert_same(args, left, "arguments afterwards")
    gradient = pullback(program.value_bar())
    assert_gradient(program, gradient)
    assert_same(pullback(program.value_bar()), gradient, "the second call of the pullback")
    assert_same(args, left, "arguments after the pullback")


@each(ACCEPTED)
def test_value_and_grad_agrees_with_differences(program: Program) -> None:
    want, left = program.plain
    decorated = program.decorated("python")
    if not program.is_scalar:
        with pytest.raises(BadArgument):
            decorated.value_and_grad(*program.args(), **program.kwargs())
        return
    for _ in range(2):  # the first call must leave nothing behind
        args = program.args()
        value, gradient = decorated.value_and_grad(*args, **program.kwargs())
        assert_same(value, want, "value")
        assert_same(args, left, "arguments afterwards")
        assert_gradient(program, gradient)


@each(ACCEPTED[::8])
def test_sample_compiled_agrees(program: Program) -> None:
    check_compiled(program)


@pytest.mark.compiled
@each(ACCEPTED)
def test_compiled_agrees(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)  # every access is checked once more
    check_compiled(program)


def check_compiled(program: Program) -> None:
    """Compiled code gives the value of plain Python and the gradient of the differences."""
    want, left = program.plain
    args = program.args()
    decorated = program.decorated("auto")
    with contextlib.ExitStack() as stack:
        if hasattr(program.module, "UNCOMPILED"):
            stack.enter_context(pytest.warns(PerformanceWarning))
        else:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("error", PerformanceWarning)
        if program.is_scalar:
            value, gradient = decorated.value_and_grad(*args, **program.kwargs())
        else:
            value, pullback = decorated.vjp(*args, **program.kwargs())
            gradient = pullback(program.value_bar())
        again = program.args()
        primal = decorated(*again, **program.kwargs())
    assert_same(primal, want, "value of the primal", rtol=1e-12)
    assert_same(again, left, "arguments after the primal", rtol=1e-12)
    assert_same(value, want, "value", rtol=1e-12)
    assert_same(args, left, "arguments afterwards", rtol=1e-12)
    assert_gradient(program, gradient)


@each(PROGRAMS)
def test_program_is_a_fair_test(program: Program) -> None:
    """Plain Python runs twice with one result, and the differences that judge the gradient are trustworthy."""
    assert program.module.__doc__
    again = program.function(*program.args(), **program.kwargs())
    assert_same(again, program.plain[0], "value")
    assert program.estimate.value, "no floating argument to differentiate by"
    assert any(np.any(part) for part in program.estimate.value.values()), "the gradient is zero everywhere"
