"""Whether a function gives a view or a copy: stores on both sides leave what plain Python leaves, for every layout."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tapegen as tg
from tapegen.errors import AliasError, NoCompiledForm, TapegenError
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.ir import intrinsics
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tapegen.rules import Rule, all_rules
from tests.rule_programs import WRITES, program_of
from tests.rules.test_rule_programs import COUNTING, NOT_SMOOTH, all_cases, copies
from tests.sources import define
from tests.view_programs import Program, drawn, judge

UNCALLED = {intrinsics.real_part}  # of real arrays: `x.real` is `x` then
LEFT_OUT = {*WRITES, *COUNTING, *NOT_SMOOTH, *UNCALLED}
RULES = [rule for rule in all_rules() if rule.kind != "inactive" and rule.func not in LEFT_OUT]


def wrong(chosen: Iterable[Program], backend: str = "python") -> list[tuple[Program, str]]:
    """The programs that are neither right nor refused, with what is wrong."""
    found = ((program, judge(program, backend)) for program in chosen)
    return [(program, verdict) for program, verdict in found if verdict.startswith("WRONG")]


def test_a_sample() -> None:
    assert wrong(drawn(120, seed=0)) == []


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(1, 9))
def test_many(seed: int) -> None:
    assert wrong(drawn(2500, seed)) == []


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_some_compiled(seed: int) -> None:
    assert wrong(drawn(25, 100 + seed), "auto") == []


COMPILED = [
    Program(2, "r = m.T.flat[:2]", "3x1 C", "fresh", "base", "sums"),
    Program(2, "r = m[:1].T.ravel()", "1x1 C", "fresh", "element", "sums"),
    Program(2, "r = m[:1].T.ravel()", "1x3 strided", "branch", "result", "sums"),
    Program(2, "r = np.ravel(m, order='F')", "1x3 strided", "fresh", "part", "elements"),
    Program(2, "r = np.ravel(m, order='F')", "1x1 negative", "branch", "base", "sums"),
    Program(2, "r = np.ascontiguousarray(m)", "rows", "fresh", "element", "loop"),
    Program(2, "r = m.ravel()", "F", "loop", "base", "sums"),
    Program(2, "r = np.diag(m)", "C", "constant", "base", "sums"),
    Program(2, "r = np.delete(m, 0, axis=0)", "1x3 C", "fresh", "part", "sums"),
    Program(1, "r = np.trim_zeros(m)", "1 negative", "constant", "element", "sums"),
]
"""Programs whose compiled text was wrong: numba copied where NumPy does not, or the other way round."""


@pytest.mark.compiled
@pytest.mark.parametrize("program", COMPILED, ids=lambda program: f"{program.maker[4:]} {program.layout}")
def test_compiled(program: Program) -> None:
    assert not judge(program, "auto").startswith("WRONG")


def numba_refuses(program: Program) -> bool:
    """Whether a program runs as Python where it would be compiled."""
    call = tg.differentiable(define(program.text()), wrt=(0, 1))._specialise((program.array(), 0.7), {})
    try:
        compiled_text(call.program, call.program.function("joint"))
    except NoCompiledForm as refusal:
        return "may be a view or a copy" in refusal.reason
    return False


@pytest.mark.parametrize(
    ("layout", "source", "store", "refused"),
    [
        ("C", "argument", "result", False),
        ("C", "fresh", "base", False),
        ("C", "branch", "element", False),
        ("F", "argument", "nothing", False),
        ("F", "argument", "base", True),
        ("strided", "fresh", "result", True),
        ("3x1 C", "fresh", "result", False),
        ("3x1 negative", "argument", "part", True),
    ],
)
def test_a_reshape_is_compiled_where_it_is_a_view_for_numba_too_or_nobody_can_tell(
    layout: str, source: str, store: str, refused: bool
) -> None:
    assert numba_refuses(Program(2, "r = m.reshape(-1)", layout, source, store, "sums")) is refused


@pytest.mark.parametrize("maker", ["v.reshape(-1)", "v.ravel()", "np.reshape(v, (1, 4))[0]"])
def test_the_caller_sees_what_is_stored_through_a_reshape(maker: str) -> None:
    """Also where the function itself reads neither the array nor its reshape again."""
    text = f"def f(v, x):\n    r = {maker}\n    r[0] = x\n    return np.sin(x)\n"
    f = function_from_text(text, {"np": np})
    for array, is_compiled in ((np.ones(4), True), (np.ones(8)[::2], False), (np.ones(4)[::-1], False)):
        program = tg.differentiable(f, wrt=(1,))._specialise((array, 0.7), {}).program
        with contextlib.nullcontext() if is_compiled else pytest.raises(NoCompiledForm, match="a view or a copy"):
            assert "= v." in compiled_text(program, program.function("primal")).text


@pytest.mark.parametrize("maker", ["r = m.T.ravel()", "r = np.expand_dims(m, 0).reshape(-1)", "r = m.T.flat[1:]"])
def test_axes_of_size_1_may_be_anywhere(maker: str) -> None:
    assert not numba_refuses(Program(2, maker, "3x1 C", "fresh", "result", "sums"))


@pytest.mark.parametrize(
    ("maker", "store"),
    [
        ("r, q, z = np.unstack(m)", "result"),
        ("r, q, z = np.unstack(m)", "base"),
        ("r = m.flat[1:]", "result"),
        ("r = m.flat[1:]", "base"),
        ("r = np.array(m, copy=None, ndmin=3)", "base"),
        ("r = np.array(m, copy=None, order='C')", "result"),
        ("r = np.nan_to_num(m)", "result"),
    ],
)
@pytest.mark.parametrize("source", ["argument", "fresh"])
def test_views_and_copies_are_what_they_are(maker: str, store: str, source: str) -> None:
    """Not only not wrong, but right."""
    assert judge(Program(2, maker, "C", source, store, "sums")) == "right"


NUMBERS = [
    *("ascontiguousarray(q)", "asfortranarray(q)", "asarray(q)", "asanyarray(q)", "array(q, copy=None, ndmin=1)"),
    *("array(q, ndmin=2)", "atleast_1d(q)", "atleast_2d(q)", "atleast_3d(q)", "copy(q)", "ravel(q)", "squeeze(q)"),
    *("reshape(q, -1)", "transpose(q)", "expand_dims(q, 0)", "broadcast_to(q, (1,))"),
]
"""What makes an array of a number."""


@pytest.mark.parametrize("kind", ["x", "np.array(x)"])
@pytest.mark.parametrize("maker", NUMBERS)
def test_a_number_gets_the_axes_that_numpy_gives_it(maker: str, kind: str) -> None:
    text = f"def f(x):\n    q = {kind}\n    r = np.{maker}\n    return (1 + r.ndim) * x + np.sum(r) ** 2\n"
    f = function_from_text(text, {"np": np})
    value, slope = tg.value_and_grad(f, backend="python")(0.65)
    axes = (f(0.65) - 0.65**2) / 0.65
    assert value == pytest.approx(f(0.65))
    assert slope == pytest.approx(axes + 2 * 0.65)


@pytest.mark.parametrize("function", ["ascontiguousarray", "asfortranarray"])
def test_an_axis_that_a_number_gets_shows_its_memory(function: str) -> None:
    text = f"def f(x):\n    base = np.array(x)\n    r = np.{function}(base)\n    r[0] = 3 * x\n    return base * x\n"
    f = function_from_text(text, {"np": np})
    assert tg.value_and_grad(f, backend="python")(0.65) == pytest.approx((3 * 0.65**2, 6 * 0.65))


@pytest.mark.parametrize("text", ["x.imag", "np.imag(x)"])
def test_nobody_writes_into_the_imaginary_part_of_real_numbers(text: str) -> None:
    f = function_from_text(f"def f(x):\n    i = {text}\n    i[0] = x[1]\n    return np.sum(i)\n", {"np": np})
    with pytest.raises(ValueError, match="read-only"):
        tg.grad(f, backend="python")(np.ones(3))


EDGES = np.array([-2.0, 0.0, 0.5, 2.0])


@pytest.mark.parametrize("call", ["np.histogram(x, e, weights=x)", "np.histogram(x, bins=e, weights=x)"])
@pytest.mark.parametrize("written", ["e", "r"])
def test_given_edges_of_a_histogram_are_what_it_returns(call: str, written: str) -> None:
    text = f"def f(x, e):\n    h, r = {call}\n    {written} *= 1.3\n    return np.sum(r * r) + np.sum(e) + np.sum(h)\n"
    f = function_from_text(text, {"np": np})
    with pytest.raises(AliasError, match="may share memory"):
        tg.grad(f, wrt=(0, 1), backend="python")(np.array([-0.6, 0.9]), EDGES.copy())


def test_heights_of_a_histogram_are_its_own() -> None:
    def f(x, e):
        h, r = np.histogram(x, e, weights=x)
        h /= 2.0
        return np.sum(h * h) + np.sum(r * r) + np.sum(e)

    def g(x, e):
        h, r = np.histogram(x, 4, weights=x)
        r *= 3.0
        return np.sum(h * h) + np.sum(r) + np.sum(e)

    x = np.array([-0.6, -1.3, 0.9])
    for function in (f, g):
        tg.check_grads(function, x, EDGES.copy(), backend="python")


def test_a_small_hessenberg_matrix_is_the_argument() -> None:
    def f(a):
        h = scipy.linalg.hessenberg(a)
        a *= 2.0
        return np.sum(h * h)

    with pytest.raises(AliasError, match="may share memory"):
        tg.grad(f, backend="python")(np.eye(2))


# ---- every function that has a rule ----------------------------------------------------------------------------------


def stores(rule: Rule, args: tuple, kwargs: dict[str, Any]) -> list[tuple[Callable[..., Any], tuple]]:
    """Programs that call a function and then store into one of its arguments or results, and read them all."""
    program, values = program_of(rule, args, kwargs)
    arrays = [f"x{k}" for k, value in enumerate(values) if np.ndim(value)]
    if not arrays or any(np.isnan(value).any() for value in values):
        return []
    result = program(*copies(list(values)))
    parts = list(result) if isinstance(result, tuple | list) else [result]
    if any(isinstance(part, tuple | list) for part in parts):
        return []
    results = [f"r{k}" for k, part in enumerate(parts) if np.asarray(part).dtype.kind == "f"]
    written = [*arrays, *(name for name in results if np.ndim(parts[int(name[1:])]))]
    targets = ", ".join(f"r{k}" for k in range(len(parts)))
    if isinstance(result, tuple | list):
        targets += ","
    read = " + ".join(f"np.sum({name} ** 2)" for name in (*arrays, *results))
    parameters = ", ".join(f"x{k}" for k in range(len(values)))
    return [
        (
            function_from_text(
                f"def stored({parameters}):\n    {targets} = call({parameters})\n    {name} *= 1.3\n"
                f"    return {read}\n",
                {"np": np, "call": program},
            ),
            values,
        )
        for name in written
    ]


def moved(x: Any, change: Any) -> Any:
    """A copy that is changed in place: in the layout of the argument, on which views depend."""
    (found,) = copies([x])
    if isinstance(found, np.ndarray):
        found += change
        return found
    return found + change


def check_stores(rule: Rule, number: int) -> None:
    for args, kwargs in all_cases(rule)[:number]:
        for stored, values in stores(rule, args, kwargs):
            given, mine = copies(list(values)), copies(list(values))
            try:
                want = stored(*given)
            except ValueError as error:
                if "read-only" not in str(error):  # a view that must not be written
                    raise
                with pytest.raises((ValueError, TapegenError)):
                    tg.value_and_grad(stored, wrt=tuple(range(len(values))), backend="python")(*mine)
                continue
            try:
                value, gradient = tg.value_and_grad(stored, wrt=tuple(range(len(values))), backend="python")(*mine)
            except TapegenError:
                continue
            np.testing.assert_allclose(value, want, rtol=1e-10)
            for left, expected in zip(mine, given, strict=True):
                np.testing.assert_allclose(left, expected, rtol=1e-10)
            ways = [np.sin(np.arange(1.0, 1.0 + np.size(x))).reshape(np.shape(x)) for x in values]
            ahead, behind = (
                stored(*(moved(x, step * way) for x, way in zip(values, ways, strict=True))) for step in (1e-6, -1e-6)
            )
            slope = (ahead - behind) / 2e-6
            found = sum(np.sum(part * way) for part, way in zip(gradient, ways, strict=True))
            np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5)


def named(rule: Rule) -> str:
    return f"{getattr(rule.func, '__module__', None)}.{rule.func.__name__}"


@pytest.mark.parametrize("rule", random.Random(0).sample(RULES, 60), ids=named)
def test_stores_behind_some_functions(rule: Rule) -> None:
    check_stores(rule, 1)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of functions under test
@pytest.mark.parametrize("rule", RULES, ids=named)
def test_stores_behind_every_function(rule: Rule) -> None:
    check_stores(rule, 8)
