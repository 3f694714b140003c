"""Calls of gradients after the first one do what the first one does: values, types, errors, what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.pipeline.artifacts.program import Program
from tapegen.runtime.fast_call import FastCall
from tapegen.runtime.specialization import SpecializationCache

pytestmark = pytest.mark.compiled

SCALE = 2.0
OFFSET: Any = np.arange(3.0)


def polynomial(x: Any, y: float, n: int) -> Any:
    for _ in range(n):
        x = x * x + y
    return x


def scaled(x: Any) -> Any:
    return np.sum(x * x) * SCALE


def shifted(x: Any) -> Any:
    return np.sum(x * x + OFFSET)


def absolute(x: Any) -> Any:
    return abs(x)


class Spring:
    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    @tg.differentiable
    def energy(self, x: Any) -> Any:
        return np.sum(x * x) * self.stiffness


def root(x: Any) -> Any:
    if x[0] < 0.0:
        raise ValueError("no root")
    return np.sqrt(x[0]) * x[1]


def overwritten(x: Any) -> Any:
    x *= 2.0
    return np.sum(x * x)


def drawn(x: Any, rng: np.random.Generator) -> Any:
    return x * rng.normal()


def structured(p: Any) -> Any:
    return (p["a"] * p["b"][0]).sum() + p["b"][1]


def noting(kind: type, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each repeated call, whether it was answered without another look."""
    answered: list[bool] = []
    run: Callable[..., Any] = kind.run  # type: ignore[attr-defined]

    def noted(self: Any, *given: Any) -> Any:
        found = run(self, *given)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(kind, "run", noted)
    return answered


def watched(func: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[bool]]:
    """A function with derivatives, and its repeated calls."""
    answered = noting(FastCall, monkeypatch)
    return tg.differentiable(func, wrt=0, cache=False), answered


def test_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(polynomial, monkeypatch)
    first = func.value_and_grad(1.5, 0.25, 2)
    assert func.value_and_grad(1.5, 0.25, 2) == first
    assert func.value_and_grad(0.5, 0.25, 1) == (0.5, 1.0)
    assert func.grad(0.5, 0.25, 0) == 1.0
    assert answered == [True, True, True]
    assert [type(part) for part in func.value_and_grad(0.5, 0.25, 1)] == [float, float]
    assert [type(part) for part in func.value_and_grad(np.float64(0.5), 0.25, 1)] == [np.float64, np.float64]
    assert [type(part) for part in func.value_and_grad(np.float64(0.5), 0.25, 1)] == [np.float64, np.float64]


def test_the_structure_of_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(structured, monkeypatch)
    tree = {"a": np.arange(3.0), "b": (2.0, 1.0)}
    for _ in range(3):
        value, gradient = func.value_and_grad(tree)
        assert value == 7.0
        assert gradient["a"].tolist() == [2.0, 2.0, 2.0]
        assert gradient["b"] == (3.0, 1.0)
    assert answered == [True, True]


def test_what_is_captured_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(scaled, monkeypatch)
    x = np.ones(2)
    for scale in (2.0, 2.0, 3.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert func.value_and_grad(x)[0] == 2.0 * scale
    assert any(answered)


def test_errors_are_those_of_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(root, monkeypatch)
    func.value_and_grad(np.array([4.0, 1.0]))
    for _ in range(2):
        with pytest.raises(ValueError, match="no root"):
            func.value_and_grad(np.array([-4.0, 1.0]))
        assert func.value_and_grad(np.array([4.0, 1.0]))[1].tolist() == [0.25, 2.0]
    assert answered == [False, True, False, True]


def test_what_needs_another_look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(overwritten, monkeypatch)
    for _ in range(3):
        x = np.ones(2)
        assert func.value_and_grad(x)[1].tolist() == [8.0, 8.0]
        assert x.tolist() == [2.0, 2.0]
    func, _ = watched(drawn, monkeypatch)
    values = [func.value_and_grad(1.0, np.random.default_rng(k)) for k in (1, 1, 2)]
    assert values[0] == values[1] != values[2]
    assert answered == []


def test_integers_that_need_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(lambda x, n: x * (n % 7), monkeypatch)
    for n, again in ((3, None), (4, True), (2**62, False), (5, True)):
        assert func.value_and_grad(2.0, n) == (2.0 * (n % 7), n % 7)
        assert answered[-1:] == ([] if again is None else [again])


def test_nothing_is_kept_of_python_code() -> None:
    func = tg.differentiable(polynomial, backend="python", cache=False)
    func.value_and_grad(1.5, 0.25, 2)
    program: Program = func._specialise((1.5, 0.25, 2), {}).program
    assert not program.repeated.get("joint")


def test_numbers_that_are_not_finite_are_found() -> None:
    func = tg.differentiable(lambda x: np.log(x), cache=False)
    with np.errstate(all="ignore"):
        for _ in range(2):
            func.value_and_grad(np.float64(0.0))
    with tg.debug_nans(), pytest.raises(tg.NotFinite):
        func.value_and_grad(np.float64(0.0))


def test_tangents_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = noting(FastCall, monkeypatch)
    func = tg.differentiable(scaled, cache=False)
    x, dot = np.arange(3.0), np.ones(3)
    for _ in range(3):
        value, tangent = func.jvp((x,), (dot,))
        assert (value, tangent) == (10.0, 12.0)
        assert type(value) is type(tangent) is np.float64
    assert answered == [True, True]
    del answered[:]
    for given in (dot.tolist(), dot.astype(int), dot.astype(np.float32), np.ones(6)[::2], dot):
        assert func.jvp((x,), (given,)) == (10.0, 12.0)
    assert answered == [True]
    for given in (np.ones(2), np.ones((3, 1)), 1j * dot, 1.0):
        with pytest.raises(tg.BadArgument, match="the tangent of 'x'"):
            func.jvp((x,), (given,))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert func.jvp((x,), (dot,)) == (15.0, 18.0)


def test_tangents_of_numbers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = noting(FastCall, monkeypatch)
    func = tg.differentiable(polynomial, cache=False)
    for tangent in (1.0, 1.0, np.float64(1.0), 1, np.ones(())):
        assert func.jvp((1.5, 0.25, 1), (tangent, None, None)) == (2.5, 3.0)
        assert func.jvp((1.5, 0.25, 1), (None, tangent, None)) == (2.5, 1.0)
    assert answered == [True, True]
    assert [type(part) for part in func.jvp((1.5, 0.25, 1), (1.0, None, None))] == [float, float]


def test_tangents_that_need_another_look(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = noting(FastCall, monkeypatch)
    for func in (overwritten, lambda x: np.sum(x * 1j).imag):
        for _ in range(3):
            assert tg.jvp(func, (np.ones(2),), (np.ones(2),), cache=False)[1] == (16.0 if func is overwritten else 2.0)
    tree = {"a": np.arange(3.0), "b": (2.0, 1.0)}
    for _ in range(3):
        assert tg.jvp(structured, (tree,), (tree,), cache=False) == (7.0, 13.0)
    assert answered == []
    for _ in range(2):
        for sign in (4.0, -4.0):
            x = np.array([sign, 1.0])
            if sign < 0.0:
                with pytest.raises(ValueError, match="no root"):
                    tg.jvp(root, (x,), (x,), cache=False)
            else:
                assert tg.jvp(root, (x,), (x,), cache=False) == (2.0, 3.0)
    assert answered == [False, True, False]


def test_results_share_no_memory_with_tangents() -> None:
    x, dot = np.arange(3.0), np.ones(3)
    for _ in range(3):
        _, (first, second) = tg.jvp(lambda x: (x, x[1:]), (x,), (dot,), cache=False)
        assert not np.may_share_memory(first, dot)
        assert not np.may_share_memory(first, second)


def lookups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An item for each call from now on whose program is looked up by the types of its arguments."""
    looked: list[int] = []
    looked_up = SpecializationCache._looked_up

    def noted(self: SpecializationCache, *given: Any) -> Any:
        looked.append(1)
        return looked_up(self, *given)

    monkeypatch.setattr(SpecializationCache, "_looked_up", noted)
    return looked


def test_products_with_hessians_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = noting(FastCall, monkeypatch)
    looked = lookups(monkeypatch)
    for count in (2, 3, 3):
        x = np.arange(count * 1.0)
        assert tg.hvp(scaled, (x,), (x,), cache=False).tolist() == (4.0 * x).tolist()
        product = tg.hvp(polynomial, (1.5, 0.25, 2), (1.0, 1.0, None), cache=False)
        assert product == (12.0 * 1.5**2 + 4.0 * 0.25 + 4.0 * 1.5, 4.0 * 1.5 + 2.0)
    assert answered == [True] * 4
    assert len(looked) == 2


def test_kinds_of_calls_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind is remembered: types, ranks, and which arguments have tangents."""
    answered = noting(FastCall, monkeypatch)
    func = tg.differentiable(lambda x, y: np.sum(x * y), wrt=(0, 1), cache=False)
    x, y, single = np.arange(3.0), np.ones(3), np.arange(3.0, dtype=np.float32)
    for _ in range(3):
        assert func(x, y) == func(single, y) == 3.0
        assert func.value_and_grad(x, y)[1][1].tolist() == [0.0, 1.0, 2.0]
        assert func.value_and_grad(x, 2.0)[1][1] == 3.0
        assert func.jvp((x, y), (y, None)) == (3.0, 3.0)
        assert func.jvp([x, y], [None, x]) == (3.0, 5.0)
        assert func.jvp((x, y), (y, x)) == (3.0, 8.0)
        assert type(func.value_and_grad(single, y)[1][0][0]) is np.float32
    assert answered == [True] * 16


def test_tangents_of_other_shapes_and_numbers() -> None:
    func = tg.differentiable(lambda x, y: np.sum(x * y), cache=False)
    x, y = np.arange(3.0), np.ones(3)
    for _ in range(2):
        assert func.jvp((x, y), (y, x)) == (3.0, 8.0)
        with pytest.raises(tg.BadArgument, match=r"the tangent of 'y' has shape \(2,\)"):
            func.jvp((x, y), (y, np.ones(2)))
        with pytest.raises(tg.BadArgument, match="3 arguments have 1 tangents"):
            func.jvp((x, y, y), (x,))
        with pytest.raises(tg.BadArgument, match="all tangents are None"):
            func.jvp((x, y), (None, None))


def test_what_is_captured_may_be_of_another_type(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(shifted, monkeypatch)
    x = np.ones(3)
    given = (np.arange(3.0), np.arange(3.0) + 1.0, np.float32(2.0), np.arange(6.0).reshape(2, 3), np.arange(3.0))
    for offset in given:
        monkeypatch.setitem(globals(), "OFFSET", offset)
        for _ in range(2):
            assert func.value_and_grad(x)[0] == np.sum(x * x + offset)
    assert len(answered) > len(given)
    assert all(answered)
    monkeypatch.delitem(globals(), "OFFSET")
    with pytest.raises(NameError, match="OFFSET"):
        func.value_and_grad(x)


def test_builtins_may_be_shadowed(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(absolute, monkeypatch)
    for _ in range(2):
        assert func.value_and_grad(-2.0) == (2.0, -1.0)
    monkeypatch.setitem(globals(), "abs", np.sin)
    for _ in range(2):
        assert func.value_and_grad(-2.0) == (np.sin(-2.0), np.cos(-2.0))
    monkeypatch.delitem(globals(), "abs")
    assert func.value_and_grad(-2.0) == (2.0, -1.0)
    assert answered == [True] * 3


def test_arguments_that_take_the_rest_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(lambda x, *more, **named: x * sum(more), monkeypatch)
    for _ in range(2):
        assert func.grad(2.0, 3.0) == 3.0
        assert func.grad(2.0, 3.0, 4.0) == 7.0
    assert answered == [True] * 2
    func, _ = watched(lambda x, n=2, flag=None: x**n, monkeypatch)
    for _ in range(2):
        assert func.grad(3.0, 2, None) == func.grad(3.0, 2) == func.grad(3.0) == 6.0
        assert func.grad(3.0, 3, None) == func.grad(3.0, n=3) == 27.0
    func.python.__defaults__ = (3, None)
    assert func.grad(3.0) == 27.0


def chosen(x: Any, squared: bool = True, mode: str = "sum", scale: float = 2.0) -> Any:
    y = x * x if squared else x
    return scale * (np.sum(y) if mode == "sum" else np.max(y))


def test_options_and_defaults_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = tg.differentiable(chosen, backend="numba", cache=False)
    x = np.array([1.0, 3.0])
    calls = [(x,), (x, True), (x, 1), (x, False), (x, True, "max"), (x, False, "max"), (x, False, "sum", 3.0)]
    first = [gradient.value_and_grad(*args) for args in calls]
    assert [float(value) for value, _ in first] == [chosen(*args) for args in calls]
    answered = noting(FastCall, monkeypatch)
    for _ in range(2):
        for args, (value, wanted) in zip(calls, first, strict=True):
            again, found = gradient.value_and_grad(*args)
            assert again == value
            assert np.array_equal(found, wanted)
    assert answered == [True] * 2 * len(calls)
    _, tangent = gradient.jvp((x,), (np.ones(2),))
    assert tangent == gradient.jvp((x,), (np.ones(2),))[1] == 2.0 * 2.0 * x.sum()


def test_defaults_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = tg.grad(chosen, backend="numba", cache=False)
    x = np.array([1.0, 3.0])
    before = gradient(x)
    monkeypatch.setattr(chosen, "__defaults__", (True, "max", 2.0))
    assert gradient(x).tolist() == [0.0, 12.0]
    monkeypatch.setattr(chosen, "__defaults__", (True, "sum", 1.0))
    assert np.array_equal(gradient(x), before / 2.0)
    monkeypatch.setattr(chosen, "__defaults__", (True,))
    with pytest.raises(TypeError, match="squared"):
        gradient(x)


def test_the_text_is_that_of_the_last_call() -> None:
    func = tg.differentiable(lambda x, y: x * x * y, wrt=0, cache=False)
    for _ in range(3):
        assert func.grad(2.0, 3.0) == 12.0
        by_the_first = func.backward_source
        assert func.jvp((2.0, 3.0), (None, 1.0)) == (12.0, 4.0)
        assert func.backward_source != by_the_first


def test_products_with_hessians_of_differentiable_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    func = tg.differentiable(scaled, cache=False)
    assert func.with_options(wrt="x") is func.with_options(wrt="x")
    looked = lookups(monkeypatch)
    x = np.arange(3.0)
    for _ in range(3):
        assert tg.hvp(func, (x,), (x,)).tolist() == [0.0, 4.0, 8.0]
        assert tg.jvp(func, (x,), (x,)) == (10.0, 20.0)
    assert len(looked) == 2
    spring = Spring(2.0)
    for _ in range(3):  # bound to the object anew each time
        assert tg.hvp(spring.energy, (x,), (x,)).tolist() == [0.0, 4.0, 8.0]
    assert len(looked) == 3
    spring.stiffness = 3.0
    assert tg.hvp(spring.energy, (x,), (x,)).tolist() == [0.0, 6.0, 12.0]
    assert tg.hvp(Spring(4.0).energy, (x,), (x,)).tolist() == [0.0, 8.0, 16.0]


def test_functions_that_write_or_return_nothing_are_called_as_before() -> None:
    func = tg.differentiable(overwritten, cache=False)
    nothing = tg.differentiable(lambda x: None, cache=False)
    for _ in range(3):
        x = np.ones(2)
        assert func(x) == 8.0
        assert x.tolist() == [2.0, 2.0]
        assert nothing(1.0) is None


def test_a_gradient_with_respect_to_nothing() -> None:
    value, pullback = tg.differentiable(lambda x: np.sum(x * x), wrt=(), backend="python").vjp(np.array([1.0, 2.0]))
    assert (value, pullback(1.0)) == (5.0, ())


def test_tuples_of_tuples() -> None:
    """They are put together without going through their structure again."""

    def nested(x: float, y: float) -> Any:
        return x * y, ((x + y,), (x - y, (y, x)), ())

    for output in (nested, lambda x, y: (nested(x, y), None), lambda x, y: [nested(x, y)]):
        derived = tg.differentiable(output, backend="numba")
        for _ in range(3):
            assert derived(3.0, 2.0) == output(3.0, 2.0)
    pushed = tg.differentiable(nested, backend="numba")
    for _ in range(3):
        assert pushed.jvp((3.0, 2.0), (1.0, None))[1] == (2.0, ((1.0,), (1.0, (0.0, 1.0)), ()))
