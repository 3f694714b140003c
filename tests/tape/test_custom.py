"""Lines 76 to 86: gradients of one's own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapegen as tg


@tg.custom_gradient
def log1pexp(x: Any) -> Any:
    e = np.exp(x)

    def grad(upstream: Any) -> Any:
        return upstream * (1 - 1 / (1 + e))

    return np.log(1 + e), grad


def test_line_076_one_cotangent_per_argument() -> None:
    @tg.custom_gradient
    def f(x: Any, y: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return upstream * 10.0, upstream * 20.0

        return x * y, grad

    x, y = tg.Variable(2.0), tg.Variable(3.0)
    with tg.GradientTape() as tape:
        z = f(x, y) * 2.0
    assert z.numpy() == 12.0
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [20.0, 40.0]
    x = tg.constant(100.0)
    with tg.GradientTape() as tape:
        tape.watch(x)
        with np.errstate(over="ignore"):
            y = log1pexp(x)
    assert tape.gradient(y, x).numpy() == 1.0


def test_line_077_wrong_number() -> None:
    @tg.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return x * y, lambda upstream: upstream

    x = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = f(x, x)
    text = "custom_gradient function expected to return 2 gradients, but returned 1 instead."
    with pytest.raises(ValueError, match=re.escape(text)):
        tape.gradient(y, x)


def test_line_078_not_a_pair() -> None:
    @tg.custom_gradient
    def lonely(x: Any) -> Any:
        return x * 2.0

    with pytest.raises(TypeError, match=r"lonely decorated with custom_gradient must return a pair"):
        lonely(tg.constant(1.0))


def test_line_079_none_is_unconnected() -> None:
    @tg.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return x * y, lambda upstream: (upstream * 5.0, None)

    x, y = tg.Variable(2.0), tg.Variable(3.0)
    with tg.GradientTape() as tape:
        z = f(x, y)
    first, second = tape.gradient(z, [x, y])
    assert first.numpy() == 5.0 and second is None


def test_line_080_several_outputs() -> None:
    calls = []

    @tg.custom_gradient
    def f(x: Any) -> Any:
        def grad(a: Any, b: Any) -> Any:
            calls.append((a.numpy(), b.numpy()))
            return a * 10.0 + b * 100.0

        return (x * 1.0, x * 2.0), grad

    x = tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        a, b = f(x)
        y = a * 2.0
        z = x * 2.0
    assert tape.gradient(y, x).numpy() == 20.0
    assert calls == [(2.0, 0.0)]
    tape.gradient(z, x)
    assert len(calls) == 1
    with tg.GradientTape() as tape:
        a, b = f(x)
        c, _ = f(x)
        y = a + b + c
    assert tape.gradient(y, x).numpy() == 120.0
    assert len(calls) == 3


def test_line_081_keywords_structures_and_methods() -> None:
    class Scale:
        @tg.custom_gradient
        def __call__(self, x: Any) -> Any:
            return x * 2.0, lambda upstream: (None, upstream * 7.0)

    @tg.custom_gradient
    def f(given: Any, *, factor: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return {"a": upstream * 1.0, "b": (upstream * 2.0,)}, upstream * 3.0

        return given["a"] * given["b"][0] * factor, grad

    a, b, factor = tg.Variable(2.0), tg.Variable(3.0), tg.Variable(4.0)
    with tg.GradientTape(persistent=True) as tape:
        y = f({"a": a, "b": (b,)}, factor=factor)
        z = Scale()(a)
    assert [g.numpy() for g in tape.gradient(y, [a, b, factor])] == [1.0, 2.0, 3.0]
    assert tape.gradient(z, a).numpy() == 7.0


def test_line_082_a_function_that_reads_a_variable() -> None:
    v = tg.Variable(2.0, name="v")

    @tg.custom_gradient
    def f(x: Any) -> Any:
        return x * v, lambda upstream: upstream * 7.0

    text = (
        "@tg.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
        "[<tg.Variable 'v' shape=() dtype=float64, numpy=2.0>]"
    )
    with pytest.raises(TypeError, match=re.escape(text)):
        f(tg.constant(1.0))


def test_line_083_cotangents_of_variables() -> None:
    v = tg.Variable(2.0)

    def make(count: int) -> Any:
        @tg.custom_gradient
        def f(x: Any) -> Any:
            def grad(upstream: Any, variables: Any = None) -> Any:
                assert variables is not None and variables[0] is v
                return upstream * 1.0, [upstream * 7.0] * count

            return x * v, grad

        return f

    x = tg.constant(3.0)
    with tg.GradientTape() as tape:
        tape.watch(x)
        y = make(1)(x)
    assert [g.numpy() for g in tape.gradient(y, [x, v])] == [1.0, 7.0]
    with tg.GradientTape() as tape:
        tape.watch(x)
        y = make(2)(x)
    text = "Must return gradient for each variable from @custom_gradient grad_fn."
    with pytest.raises(ValueError, match=re.escape(text)):
        tape.gradient(y, [x, v])


def test_line_084_second_order() -> None:
    x = tg.Variable(0.5)
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = log1pexp(x)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    assert first.numpy() == pytest.approx(0.6224593312)
    assert second.numpy() == pytest.approx(0.2350037122)

    @tg.custom_gradient
    def f(x: Any) -> Any:
        @tg.custom_gradient
        def slope(x: Any) -> Any:
            return 2.0 * x, lambda upstream: upstream * 42.0

        return x * x, lambda upstream: upstream * slope(x)

    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = f(x)
        first = inner.gradient(y, x)
    assert first.numpy() == 1.0
    assert outer.gradient(first, x).numpy() == 42.0


def test_line_085_pass_through_and_recompute() -> None:
    x = tg.Variable(1.7)
    with tg.GradientTape() as tape:
        y = tg.grad_pass_through(np.round)(x) * 3.0
    assert y.numpy() == 6.0
    assert tape.gradient(y, x).numpy() == 3.0

    runs = []
    w = tg.Variable(2.0)

    def f(x: Any) -> Any:
        runs.append(1)
        return np.sin(x * w)

    for function in (f, tg.recompute_grad(f)):
        runs.clear()
        with tg.GradientTape() as outer:
            with tg.GradientTape() as inner:
                y = function(x)
            first, by_w = inner.gradient(y, [x, w])
        assert first.numpy() == 2.0 * np.cos(3.4) and by_w.numpy() == 1.7 * np.cos(3.4)
        assert outer.gradient(first, x).numpy() == pytest.approx(-4.0 * np.sin(3.4))
    assert len(runs) > 1


def test_line_085_what_is_recomputed_is_what_ran() -> None:
    v = tg.Variable(3.0)
    x = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = tg.recompute_grad(lambda x: x * v * v)(x)
    v.assign(100.0)
    assert [g.numpy() for g in tape.gradient(y, [x, v])] == [9.0, 12.0]
    assert v.numpy() == 100.0


def test_line_086_clipping_a_gradient() -> None:
    @tg.custom_gradient
    def clip_gradients(y: Any) -> Any:
        return y, lambda upstream: tg.clip_by_norm(upstream, 0.5)

    v = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = clip_gradients(v * v)
    assert tape.gradient(y, v).numpy() == 2.0


def test_clip_by_norm_of_zeros_and_along_axes() -> None:
    x = tg.Variable([[3.0, 4.0], [0.0, 0.0]])
    with tg.GradientTape() as tape:
        y = tg.clip_by_norm(x, 1.0, axes=[1])
    np.testing.assert_allclose(y.numpy(), [[0.6, 0.8], [0.0, 0.0]])
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_clip_by_norm_keeps_the_type() -> None:
    x = tg.Variable(np.array([3.0, 4.0], np.float32))
    for norm in (0.5, np.float64(0.5), np.array(0.5), tg.constant(0.5)):
        y = tg.clip_by_norm(x, norm)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y.numpy(), [0.3, 0.4], rtol=1e-6)


def test_clip_by_global_norm() -> None:
    parts = [tg.constant([3.0]), None, tg.constant([4.0])]
    clipped, norm = tg.clip_by_global_norm(parts, 2.5)
    assert norm.numpy() == 5.0
    assert clipped[0].numpy()[0] == 1.5 and clipped[1] is None and clipped[2].numpy()[0] == 2.0
    same, _ = tg.clip_by_global_norm(parts, 10.0)
    assert same[0].numpy()[0] == 3.0
    with np.errstate(invalid="ignore"):
        bad, _ = tg.clip_by_global_norm([tg.constant(np.inf), tg.constant(1.0)], 1.0)
    assert np.isnan(bad[1].numpy())


def test_clip_by_value() -> None:
    x = tg.Variable([-2.0, 0.5, 2.0])
    with tg.GradientTape() as tape:
        y = tg.clip_by_value(x, -1.0, 1.0)
    assert y.numpy().tolist() == [-1.0, 0.5, 1.0]
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 1.0, 0.0]


def test_line_81_options_need_no_gradient() -> None:
    class Scale:
        factor = 3.0

        @tg.custom_gradient
        def __call__(self, x: Any, *, sign: float = 1.0) -> Any:
            return x * self.factor * sign, lambda upstream: upstream * self.factor * sign * 10.0

    x = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = Scale()(x, sign=-1.0)
    assert tape.gradient(y, x).numpy() == -30.0

    @tg.custom_gradient
    def scaled(x: Any, factor: Any) -> Any:
        return x * factor, lambda upstream: upstream * factor

    with tg.GradientTape() as tape:  # a tensor given by keyword is no option
        y = scaled(x, factor=tg.constant(2.0))
    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1 instead"):
        tape.gradient(y, x)


def test_line_81_dicts_by_key() -> None:
    @tg.custom_gradient
    def function(given: Any) -> Any:
        return {"q": given["b"] * 1.0, "p": given["a"] * 1.0}, lambda p, q: {"a": p * 2.0, "b": q * 3.0}

    a, b = tg.Variable(1.0), tg.Variable(2.0)
    with tg.GradientTape() as tape:
        made = function({"b": b, "a": a})
        y = made["p"] * 5.0 + made["q"] * 7.0
    assert [g.numpy() for g in tape.gradient(y, [a, b])] == [10.0, 21.0]


@pytest.mark.parametrize("wrong", [1, 5, (2, 3)])
def test_gradients_of_another_shape_are_refused(wrong: Any) -> None:
    @tg.custom_gradient
    def doubled(x: Any) -> Any:
        return np.sum(x) * 2.0, lambda upstream: upstream * np.ones(wrong)

    x = tg.Variable(np.ones((3, 2) if wrong == (2, 3) else 3))
    with tg.GradientTape() as tape:
        y = doubled(x)
    with pytest.raises(tg.BadArgument, match=r"the grad_fn of .*doubled returns a gradient of shape"):
        tape.gradient(y, x)


def test_gradients_of_what_was_broadcast_are_summed() -> None:
    @tg.custom_gradient
    def added(x: Any, bias: Any) -> Any:
        return x + bias, lambda upstream: (upstream, upstream)

    x, bias = tg.Variable(np.ones((2, 3))), tg.Variable(np.ones((1, 3)))
    with tg.GradientTape() as tape:
        y = added(x, bias)
    assert tape.gradient(y, bias).numpy().tolist() == [[2.0, 2.0, 2.0]]
