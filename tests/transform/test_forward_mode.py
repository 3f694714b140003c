"""Tangents: forward mode against reverse mode, against differences, and in the structures that users give.

`python -m pytest tests/transform/test_forward_mode.py -m whole` takes every program instead of every tenth.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import AliasError, BadArgument, PerformanceWarning
from tapegen.pipeline.artifacts.execution import run
from tapegen.rules import registry
from tests.oracle import floating, is_floating, leaves, with_leaf
from tests.test_programs import ACCEPTED as PROGRAMS
from tests.test_programs import Program, assert_same, each

# a reshape that copies for one layout and not for another, where both sides are stored through
UNSURE = ("language/ravel_copy", "language/transpose_reshape_views-in_branch", "language/view_or_copy")
REFUSED = [program for program in PROGRAMS if program.name.startswith(UNSURE)]
ACCEPTED = [program for program in PROGRAMS if program not in REFUSED]
SINGLE = 1e-4
DOUBLE = 1e-11


def direction(program: Program, seed: int = 5) -> tuple:
    """A random tangent for every argument that the program is differentiated by."""
    rng = np.random.default_rng(seed)
    args = program.args()
    for path, leaf in list(leaves(args)):
        if is_floating(leaf):
            drawn = rng.uniform(-1.0, 1.0, np.shape(leaf))
            args = with_leaf(
                args, path, drawn.astype(leaf.dtype) if isinstance(leaf, np.ndarray) else type(leaf)(drawn)
            )
    return tuple(arg if k in program.positions() else None for k, arg in enumerate(args))


def projected(program: Program, tangent: Any) -> float:
    """The tangent of the weighted sum of all results."""
    found = dict(leaves(tangent))
    return sum(float(np.sum(found[path] * weight)) for path, weight in program.weights.items())


def check_against_reverse(program: Program, backend: str = "python") -> None:
    """`<value_bar, J v> == <J^T value_bar, v>`, and the primal is what plain Python gives."""
    v = direction(program)
    args = program.args()
    value, tangent = program.decorated(backend).jvp(args, v, **program.kwargs())
    rtol = 0.0 if backend == "python" else 1e-12
    assert_same(value, program.plain[0], "value", rtol=rtol)
    assert_same(args, program.plain[1], "arguments afterwards", rtol=rtol)
    for path, leaf in floating(value).items():
        have = np.asarray(dict(leaves(tangent))[path])
        assert have.shape == leaf.shape, f"tangent {path}: shape"
        assert have.dtype == np.asarray(dict(leaves(value))[path]).dtype, f"tangent {path}: dtype"
    _, pullback = program.decorated("python").vjp(*program.args(), **program.kwargs())
    terms = []
    for k, part in zip(program.positions(), pullback(program.value_bar()), strict=True):
        along = floating(v[k])
        terms += [np.asarray(leaf, float) * along[path] for path, leaf in leaves(part) if path in along]
    backward = sum(float(np.sum(term)) for term in terms)
    scale = 1.0 + sum(float(np.sum(np.abs(term))) for term in terms)
    single = any(np.asarray(leaf).dtype == np.float32 for _, leaf in leaves((program.args(), value)))
    assert abs(projected(program, tangent) - backward) <= (SINGLE if single else DOUBLE) * scale


@each(REFUSED)
def test_views_that_may_be_copies_are_refused(program: Program) -> None:
    v = direction(program)
    with pytest.raises(AliasError):
        program.decorated("python").jvp(program.args(), v, **program.kwargs())


@each(ACCEPTED[::10])
def test_sample_agrees_with_reverse(program: Program) -> None:
    check_against_reverse(program)


@pytest.mark.whole
@each(ACCEPTED)
def test_agrees_with_reverse(program: Program) -> None:
    check_against_reverse(program)


@each(ACCEPTED[5::120])
def test_sample_compiled_agrees_with_reverse(program: Program) -> None:
    check_against_reverse(program, "auto")


@pytest.mark.compiled
@each(ACCEPTED)
def test_compiled_agrees_with_reverse(program: Program) -> None:
    with pytest.warns(PerformanceWarning) if hasattr(program.module, "UNCOMPILED") else contextlib.nullcontext():
        check_against_reverse(program, "auto")


@each(ACCEPTED[::8])  # those whose differences the tests of reverse mode need anyway
def test_agrees_with_differences(program: Program) -> None:
    v = direction(program)
    _, tangent = program.decorated("python").jvp(program.args(), v, **program.kwargs())
    along = {(k, *path): leaf for k in program.positions() for path, leaf in floating(v[k]).items()}
    expected = sum(float(np.sum(part * along[path])) for path, part in program.estimate.value.items())
    scale = 1.0 + sum(float(np.sum(np.abs(part))) for part in program.estimate.value.values())
    assert abs(projected(program, tangent) - expected) <= program.tol * scale


# ---- what the text looks like ----------------------------------------------------------------------------------------


def march(u0: np.ndarray, k: float, n: int) -> float:
    u = u0.copy()
    for _ in range(n):
        u[1:-1] += k * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def test_text_is_the_primal_with_tangents_between() -> None:
    decorated = tg.differentiable(march, backend="python")
    decorated.jvp((np.ones(5), 0.1, 3), (np.ones(5), None, None))
    text = decorated.inspect(np.ones(5), 0.1, 3).tangent
    assert "def march_jvp(u0, k, n, u0_dot):" in text
    lines = [line.strip() for line in text.splitlines()]
    primal = lines.index("u[1:-1] += k * (u[2:] - 2.0 * u[1:-1] + u[:-2])")
    assert lines[primal + 1] == "u_dot[1:-1] += k * (u_dot[2:] - 2.0 * u_dot[1:-1] + u_dot[:-2])"
    assert "return total, total_dot" in text or "_dot" in lines[-1]


def solved(w: np.ndarray, x: np.ndarray) -> float:
    return np.sum(np.tanh(w @ x) ** 2) + np.sum(np.linalg.solve(w, x))


def test_what_does_not_vary_costs_nothing() -> None:
    w, x = np.array([[2.0, 0.5], [-0.3, 1.5]]), np.array([0.4, 0.7])
    by_x = tg.differentiable(solved, wrt=1, backend="python").inspect(w, x).tangent
    assert "w_dot" not in by_x
    assert by_x.count(" @ ") == 2
    by_w = tg.differentiable(solved, wrt=0, backend="python").inspect(w, x).tangent
    assert "x_dot" not in by_w
    tg.check_grads(solved, w, x, modes=("forward", "reverse"), order=2, backend="python")
    tg.check_grads(solved, w, x, modes=("forward", "reverse"), order=2, wrt=1, backend="python")


# ---- contracts -------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Box:
    value: Any
    label: str


def test_structures_in_and_out() -> None:
    def f(p: dict, box: Box) -> Any:
        return Pair(p["w"] * box.value, {"n": 3, "s": np.sum(p["b"]), "c": 1.5, "label": box.label})

    p = {"w": np.array([1.0, 2.0]), "b": np.float32(3.0)}
    dots = {"w": np.array([0.5, -1.0]), "b": np.float32(2.0)}
    value, tangent = tg.jvp(f, (p, Box(2.0, "x")), (dots, Box(10.0, "ignored")), backend="python")
    assert isinstance(value, Pair)
    assert isinstance(tangent, Pair)
    np.testing.assert_array_equal(tangent.left, dots["w"] * 2.0 + p["w"] * 10.0)
    assert tangent.right == {"n": None, "s": np.float32(2.0), "c": 0.0, "label": None}
    assert tangent.right["s"].dtype == np.float32


def test_tangents_are_copied_and_results_are_fresh() -> None:
    def f(x: np.ndarray) -> Any:
        x[0] = 5.0 * x[1]
        return x, x

    x, v = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, (first, second) = tg.jvp(f, (x,), (v,), backend="python")
    np.testing.assert_array_equal(x, [10.0, 2.0])
    np.testing.assert_array_equal(v, [3.0, 4.0])
    np.testing.assert_array_equal(first, [20.0, 4.0])
    np.testing.assert_array_equal(second, first)
    assert value[0] is x
    assert not np.may_share_memory(first, second)


def test_results_share_no_memory_with_tangents() -> None:
    def f(x: np.ndarray) -> Any:
        y = x.reshape(-1)
        z = np.conj(x)
        z[0] = 2.0 * x[1]
        return x, y, z

    for v in (np.array([3.0, 4.0]), np.arange(4.0)[::2], np.arange(2)):
        entry = v.copy()
        _, tangents = tg.jvp(f, (np.array([1.0, 2.0]),), (v,), backend="python")
        np.testing.assert_array_equal(v, entry)
        for tangent, expected in zip(tangents, (v, v, [2.0 * v[1], v[1]]), strict=True):
            np.testing.assert_array_equal(tangent, expected)
            assert not np.may_share_memory(tangent, v)


def test_keywords_and_constant_arguments() -> None:
    def f(x: float, n: int, *, scale: float = 2.0) -> float:
        return scale * x**n

    value, tangent = tg.differentiable(f, backend="python").jvp((3.0, 2), (1.0, None), scale=10.0)
    assert (value, tangent) == (90.0, 60.0)


@pytest.mark.parametrize(
    ("primals", "tangents"),
    [
        ((np.ones(3), 2.0), (np.ones(3),)),
        ((np.ones(3), 2.0), (np.ones(4), None)),
        ((np.ones(3), 2.0), (None, None)),
        ((np.ones(3), 2.0), ({"x": 1.0}, None)),
        ((np.ones(3), 2.0), ("x", None)),
        ((np.ones(3), 2), (None, 1.0)),
    ],
)
def test_tangents_that_do_not_fit_are_refused(primals: tuple, tangents: tuple) -> None:
    def f(x: np.ndarray, k: float) -> float:
        return np.sum(x) * k

    with pytest.raises(BadArgument):
        tg.jvp(f, primals, tangents, backend="python")


# ---- special points --------------------------------------------------------------------------------------------------


def test_a_zero_tangent_wins_over_an_infinite_slope() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)

    _, tangent = tg.jvp(f, (np.array([0.0, 4.0]),), (np.array([0.0, 1.0]),), backend="python")
    np.testing.assert_array_equal(tangent, [0.0, 0.25])


def test_broadcast_operands_have_tangents_of_full_size() -> None:
    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        z = x + y
        z[0, 0] += 1.0
        return z

    x, y = np.ones((3, 1)), np.ones(4)
    _, tangent = tg.jvp(f, (x, y), (np.array([[1.0], [2.0], [3.0]]), None), backend="python")
    np.testing.assert_array_equal(tangent, np.broadcast_to([[1.0], [2.0], [3.0]], (3, 4)))


def test_results_that_do_not_depend_on_the_input_have_zero_tangents() -> None:
    def f(x: np.ndarray, y: np.ndarray) -> Any:
        return x * 2.0, y * 2.0, 3.0 * y[0]

    _, (first, second, third) = tg.jvp(f, (np.ones(2), np.ones(3)), (np.ones(2), None), backend="python")
    np.testing.assert_array_equal(first, [2.0, 2.0])
    np.testing.assert_array_equal(second, [0.0, 0.0, 0.0])
    assert third == 0.0


def test_a_border_of_constants_has_no_tangent() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return np.pad(x, 1, constant_values=7.0)

    _, tangent = tg.jvp(f, (np.ones(2),), (np.array([1.0, 2.0]),), backend="python")
    np.testing.assert_array_equal(tangent, [0.0, 1.0, 2.0, 0.0])


def test_a_store_through_a_reshape_reaches_the_tangent() -> None:
    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a = np.ascontiguousarray(x.T * 1.0) * y
        b = np.zeros((2, 3))
        b[:] = a
        flat = b.reshape(-1)
        flat[1] = 10.0 * flat[0]
        return b

    x, y = np.arange(6.0).reshape(3, 2) + 1.0, np.ones((2, 3))
    value, tangent = tg.jvp(f, (x, y), (x, None), backend="python")
    np.testing.assert_array_equal(value, tangent)


def test_a_store_through_a_reshape_of_unknown_order_is_refused() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        a = x * 2.0
        flat = a.reshape(-1)
        flat[1] = 10.0 * flat[0]
        return a

    with pytest.raises(AliasError):
        tg.jvp(f, (np.ones((3, 2)).T,), (np.ones((2, 3)),), backend="python")


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_every_pullback_has_a_pushforward() -> None:
    found = [rule for rule in registry.all_rules() if rule.kind == "pullback" and not rule.pushforward]
    missing = [rule.func for rule in found if rule.body.__module__.startswith("tapegen.")]  # tests make others
    assert missing == [tg.clip_gradient]  # which is about cotangents alone


def _cube(x: np.ndarray) -> np.ndarray:
    return x**3


@pytest.fixture
def cube_rule() -> Any:
    def cube(x: Any, *, out_bar: Any) -> Any:
        return 3.0 * x * x * out_bar

    registry.pullback(_cube, shapes=[(3,)])(cube)
    yield cube
    del registry._RULES[_cube]


def test_a_missing_pushforward_is_the_transpose_of_the_pullback(cube_rule: Any) -> None:
    x, v = np.array([0.5, -2.0, 0.0]), np.array([1.0, 3.0, 2.0])
    np.testing.assert_allclose(tg.jvp(lambda x: _cube(x), (x,), (v,), backend="python")[1], 3.0 * x * x * v, rtol=1e-15)


def test_a_wrong_pushforward_is_found(cube_rule: Any) -> None:
    def wrong(x: Any, *, x_dot: Any) -> Any:
        return 2.0 * x * x * x_dot

    cube_rule.pushforward(wrong)
    with pytest.raises(AssertionError, match="pushforward"):
        tg.check_rule(_cube)


def test_the_program_of_a_tangent_is_kept_apart_from_what_is_built_of_it() -> None:
    x, v = np.array([0.5, -2.0]), np.array([1.0, 3.0])
    program = tg.differentiable(lambda x: np.sum(x**3), backend="python")._specialise((x,), {}).program
    first = program.tangent  # asked for once more where its compiled form is refused
    assert run(program, "tangent", [x, v])[0] == np.sum(3.0 * x**2 * v)
    assert program.tangent is first


def test_an_array_without_a_tangent_gets_one_where_it_is_written() -> None:
    def f(x, w):
        w[0] = x * x
        return np.sum(w * w)

    value, tangent = tg.jvp(f, (1.5, np.array([1.0, 2.0])), (2.0, None), backend="python")
    assert (value, tangent) == (1.5**4 + 4.0, 4.0 * 1.5**3 * 2.0)
