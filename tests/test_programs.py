"""Every program under `tests/programs` against plain Python and against numerical gradients.

A program is a module with a docstring, a function `f` (or several named `at_top`, `in_for`, `in_while`, `in_branch`)
and `ARGS`, a tuple or a function that returns fresh arguments.  Optional: `KWARGS`, `WRT` (positions or names; default:
every argument with a floating number in it), `TOL` (relative to the largest entry of a gradient), `UNCOMPILED` (why
generated Python runs in the place of compiled code).
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib
import inspect
import pathlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import (
    BadArgument,
    PerformanceWarning,
    TapegenError,
)
from tests.oracle import Estimate, floating, is_floating, leaves, numerical_gradient, with_leaf

FOLDER = pathlib.Path(__file__).parent / "programs"
FUNCTIONS = ("f", "at_top", "in_for", "in_while", "in_branch")
TOL = 1e-7


@dataclasses.dataclass(frozen=True)
class Program:
    """One function to differentiate and where."""

    name: str
    function: Callable[..., Any]
    module: Any

    def args(self) -> tuple:
        source = self.module.ARGS
        return source() if callable(source) else copy.deepcopy(source)

    def kwargs(self) -> dict[str, Any]:
        return copy.deepcopy(getattr(self.module, "KWARGS", {}))

    @property
    def tol(self) -> float:
        return getattr(self.module, "TOL", TOL)

    @property
    def wrt(self) -> tuple:
        default = tuple(k for k, arg in enumerate(self.args()) if floating(arg))
        return getattr(self.module, "WRT", default)

    def positions(self) -> list[int]:
        names = list(inspect.signature(self.function).parameters)
        return [entry if isinstance(entry, int) else names.index(entry) for entry in self.wrt]

    def decorated(self, backend: str) -> Any:
        return differentiable(wrt=self.wrt, backend=backend)(self.function)

    @functools.cached_property
    def plain(self) -> tuple[Any, tuple]:
        """The result of plain Python, and what it leaves in its arguments."""
        args = self.args()
        return self.function(*args, **self.kwargs()), args

    @functools.cached_property
    def weights(self) -> dict[tuple, np.ndarray]:
        """A weight for every floating number of the result; 1 when the result is one number."""
        rng = np.random.default_rng(7)
        parts = floating(self.plain[0])
        if self.is_scalar:
            return {(): np.array(1.0)}
        return {path: rng.uniform(0.5, 1.5, part.shape) for path, part in parts.items()}

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.plain[0], float | np.floating) or (
            is_floating(self.plain[0]) and self.plain[0].ndim == 0
        )

    def value_bar(self) -> Any:
        """The weights in the structure of the result."""
        bar = copy.deepcopy(self.plain[0])
        kinds = dict(leaves(bar))
        for path, weight in self.weights.items():
            leaf = kinds[path]
            cast = weight.astype(leaf.dtype) if isinstance(leaf, np.ndarray) else type(leaf)(weight)
            bar = with_leaf(bar, path, cast)
        return bar

    @functools.cached_property
    def estimate(self) -> Estimate:
        args, kwargs = self.args(), self.kwargs()
        wanted = self.positions()
        paths = [path for path in floating(args) if path[0] in wanted]
        return numerical_gradient(self.function, args, kwargs, self.weights, paths)


def collect() -> list[Program]:
    """Every program under the folder, in order of name."""
    programs = []
    for path in sorted(FOLDER.rglob("*.py")):
        relative = path.relative_to(FOLDER).with_suffix("")
        if path.name == "__init__.py" or relative.parts[0] == "random":  # those have oracles of their own
            continue
        module = importlib.import_module(".".join(("tests", "programs", *relative.parts)))
        if not hasattr(module, "ARGS"):  # a module that other programs import
            continue
        for name in FUNCTIONS:
            if hasattr(module, name):
                label = str(relative) if name == "f" else f"{relative}-{name}"
                programs.append(Program(label, getattr(module, name), module))
    return programs


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
