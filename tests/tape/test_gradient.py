"""Lines 39 to 75: gradients, weights of targets, what is unconnected, and what is not recorded."""

from __future__ import annotations

import logging
import math
import re
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.rules import registry
from tapegen.tape import gradient_arguments

ONCE = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"


def test_line_039_the_structure_of_the_sources() -> None:
    x, y = tg.Variable(2.0), tg.Variable([3.0, 4.0])
    with tg.GradientTape(persistent=True) as tape:
        z = np.sum(x * y)
    assert isinstance(tape.gradient(z, x), tg.Tensor)
    assert isinstance(tape.gradient(z, (x, y)), tuple)
    nested = tape.gradient(z, {"a": [x, (y,)], "b": y})
    assert nested["a"][0].numpy() == 7.0
    assert isinstance(nested["a"][1], tuple)
    assert nested["a"][1][0].numpy().tolist() == nested["b"].numpy().tolist() == [2.0, 2.0]


def test_line_040_empty_structures() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.gradient(y, []) == []
    assert tape.gradient([], [x]) == [None]
    assert tape.gradient([], [x], unconnected_gradients="zero")[0].numpy() == 0.0


def test_line_041_the_gradient_of_the_sum() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * [3.0, 4.0]
        z = x**2
        w = 1 / x
    assert tape.gradient(y, x).numpy() == 7.0
    for targets in ([z, w], (z, w), {"z": z, "w": [w]}):
        assert tape.gradient(targets, x).numpy() == 3.75


def test_line_042_duplicates() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.gradient([y, y], x).numpy() == 12.0
    assert [g.numpy() for g in tape.gradient(y, [x, x])] == [6.0, 6.0]


def test_line_043_the_target_is_the_source() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.gradient(y, y).numpy() == 1.0
    assert tape.gradient([x, y], x).numpy() == 5.0

    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = x * x
        z = x + y
    assert [g.numpy() for g in tape.gradient([x, y, z], [x, y])] == [1.0 + 6.0 + 7.0, 2.0]

    a, b = tg.Variable(3.0), tg.Variable(5.0)
    with tg.GradientTape() as tape:
        c = b * b
    assert [g.numpy() for g in tape.gradient([a, b, c], [a, b])] == [1.0, 11.0]


def test_line_044_intermediates_as_sources() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = x * x
        z = y * y
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [108.0, 18.0]


def test_line_045_no_target() -> None:
    text = (
        "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
        "differentiated, but received None."
    )
    with tg.GradientTape() as tape:
        x = tg.Variable(1.0) * 2.0
    with pytest.raises(TypeError, match=re.escape(text)):
        tape.gradient(None, x)


@pytest.mark.parametrize("thing", [3.0, None, "text", np.ones(3)])
def test_line_046_what_is_no_tensor(thing: Any) -> None:
    x = tg.Variable(1.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * 2.0
    with pytest.raises(TypeError, match=f"Argument `sources` .* item 1 is .* of type '{type(thing).__name__}'"):
        tape.gradient(y, [x, thing])
    with pytest.raises(TypeError, match=f"Argument `target` .* item 0 is .* of type '{type(thing).__name__}'"):
        tape.gradient([thing], x)


def test_line_047_a_second_call() -> None:
    x = tg.Variable(1.0)
    with pytest.raises(RuntimeError, match=re.escape(ONCE)):
        tg.GradientTape().gradient(x, x)
    with tg.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=re.escape(ONCE)):
        tape.gradient(y, x)


def test_line_048_a_second_call_of_another_kind() -> None:
    x = tg.Variable([[1.0]])
    for name in ("jacobian", "batch_jacobian"):
        with tg.GradientTape() as tape:
            y = x * x
        tape.gradient(y, x)
        with pytest.raises(RuntimeError, match=re.escape(ONCE)):
            getattr(tape, name)(y, x)


def test_line_049_inside_the_block_without_persistence() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as outer:
        with tg.GradientTape() as tape:
            y = x * x
            g = tape.gradient(y, x)
            z = y * x
        assert g.numpy() == 6.0
        with pytest.raises(RuntimeError, match=re.escape(ONCE)):
            tape.gradient(z, x)
    assert outer.gradient(z, x).numpy() == 27.0


def test_line_050_inside_the_block_with_persistence(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_arguments, "_counts", {})
    x = tg.Variable(3.0)
    with caplog.at_level(logging.WARNING, "tapegen"), tg.GradientTape(persistent=True) as tape:
        y = x**3
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
        third = tape.gradient(second, x)
    assert [g.numpy() for g in (first, second, third)] == [27.0, 18.0, 6.0]
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient "
        "than calling it outside the context"
    )


def test_line_051_persistent_tapes_answer_again() -> None:
    x = tg.constant([1.0, 3.0])
    with tg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy().tolist() == [4.0, 108.0]
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 6.0]
    assert tape.gradient(z, y).numpy().tolist() == [2.0, 18.0]
    assert tape.gradient(z, x).numpy().tolist() == [4.0, 108.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_line_052_the_dtype_of_the_source(dtype: str) -> None:
    x = tg.Variable([1.0, 2.0], dtype=dtype)
    wide = tg.constant([1.0, 1.0])
    with tg.GradientTape(persistent=True) as tape:
        y = tg.cast(x, "float64") * wide
        z = x * wide
        w = np.sum(x * x)
    for target in (y, z, w):
        assert tape.gradient(target, x).dtype == dtype


def test_line_053_integers_break_the_path() -> None:
    x = tg.Variable(2.5)
    with tg.GradientTape(persistent=True) as tape:
        whole = tg.cast(x, "int64")
        y = x * tg.cast(whole, "float64")
        flag = x > 1.0
        z = tg.cast(whole, "float64") * 3.0
    assert tape.gradient(y, x).numpy() == 2.0
    assert tape.gradient(z, x) is None
    assert tape.gradient(flag, x) is None
    assert tape.gradient(whole, x) is None
    text = tg.constant(["a", "b"])
    with tg.GradientTape() as tape:
        tape.watch(text)
        same = tg.identity(text)
    assert tape.gradient(same, text) is None


def test_line_054_gathering_adds_up() -> None:
    v = tg.Variable([1.0, 2.0, 3.0])
    with tg.GradientTape(persistent=True) as tape:
        taken = np.take(v, [0, 2, 0])
        indexed = v[np.array([0, 2, 0])]
        dense = np.sum(v * v) + np.sum(taken)
    assert tape.gradient(taken, v).numpy().tolist() == [2.0, 0.0, 1.0]
    assert tape.gradient(indexed, v).numpy().tolist() == [2.0, 0.0, 1.0]
    assert tape.gradient(dense, v).numpy().tolist() == [4.0, 4.0, 7.0]


def test_line_055_numpy_records_and_numpy_leaves() -> None:
    x = tg.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tg.GradientTape(persistent=True) as tape:
        inside = np.mean(np.mean(x**2, axis=0))
        outside = tg.constant(np.mean((x**2).numpy()))
    assert tape.gradient(inside, x).numpy().tolist() == [[0.5, 1.0], [1.5, 2.0]]
    assert tape.gradient(outside, x) is None
    left = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        left[0, 0] = 5.0


@pytest.mark.parametrize(
    "leave",
    [
        lambda t: float(t[0]),
        lambda t: math.sin(t[0]),
        lambda t: np.array([t, t]),
        lambda t: np.asarray(t),
        lambda t: np.full(3, t[0]),
        lambda t: int(t[0]),
        lambda t: complex(t[0]),
        lambda t: t.item(0),
        lambda t: t.tolist(),
        lambda t: np.zeros(2).__setitem__(slice(None), t),
        lambda t: np.add(t, 1.0, out=np.zeros(2)),
        lambda t: np.zeros(2).__iadd__(t),
        lambda t: np.add.at(np.zeros(2), [0, 1], t),
    ],
)
def test_line_055_leaving_unasked(leave: Any) -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape():
        t = x * 2.0
        with pytest.raises(tg.NotDifferentiable, match=r"leaves the tape(.|\n)*\.numpy\(\)") as caught:
            leave(t)
    assert caught.value.span is not None and caught.value.span.file == __file__
    try:
        leave(t)  # outside a tape it leaves freely
    except tg.NotDifferentiable as error:
        pytest.fail(str(error))


def test_line_055_an_element_of_an_array() -> None:
    x = tg.Variable([1.0, 2.0])
    buffer = np.zeros(2)
    with tg.GradientTape(), pytest.raises(ValueError, match="setting an array element"):
        buffer[0] = x[0]  # inside of the block NumPy has wrapped what the conversion raises
    with pytest.raises(tg.NotDifferentiable, match="converts a tensor") as caught, tg.GradientTape():
        buffer[0] = x[0]
    assert caught.value.span is not None and "buffer[0] = x[0]" in str(caught.value)
    buffer[0] = x[1]
    assert buffer[0] == 2.0


def test_line_055_errors_that_users_make_of_it() -> None:
    x = tg.Variable(1.0)

    def translated() -> None:
        try:
            float(x)
        except tg.NotDifferentiable as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine"), tg.GradientTape():
        translated()


def test_line_056_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._RULES, np.unwrap, raising=False)
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as tape:
        y = np.unwrap(x)
    with pytest.raises(LookupError, match="gradient registry has no entry for: unwrap") as caught:
        tape.gradient(y, x)
    assert "y = np.unwrap(x)" in str(caught.value)
    assert "tg.pullback" in str(caught.value)
    with tg.GradientTape() as tape:
        y = np.unwrap(x)
        z = x * 2.0
    assert tape.gradient(z, x).numpy().tolist() == [2.0, 2.0]  # nobody asks for it


def test_line_057_exceptions_of_a_backward_function() -> None:
    class Mine(Exception):
        pass

    @tg.custom_gradient
    def f(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            raise Mine("as it is")

        return x * 2.0, grad

    x = tg.Variable(1.0)
    with tg.GradientTape() as tape:
        y = f(x)
    with pytest.raises(Mine, match="as it is"):
        tape.gradient(y, x)


def test_line_058_control_flow_as_executed() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = x
        while y < 100.0:
            if y > 10.0:
                y = y * y
            else:
                y = y * x
        assert y.numpy() == 256.0
    assert tape.gradient(y, x).numpy() == 1024.0


# ---- output_gradients ------------------------------------------------------------------------------------------------


def test_line_059_weights() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    for weights in (tg.constant([10.0, 1.0]), np.array([10.0, 1.0])):
        assert tape.gradient(y, x, output_gradients=weights).numpy().tolist() == [20.0, 4.0]
    assert tape.gradient(x, x, output_gradients=np.array([3.0, 4.0])).numpy().tolist() == [3.0, 4.0]


def test_line_060_one_entry_per_target() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = x * x
    assert tape.gradient([y, y], x, output_gradients=[2.0, 5.0]).numpy() == 42.0


def test_line_061_none_stands_for_ones() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = x * x
    assert tape.gradient([y, y], x, output_gradients=[None, 5.0]).numpy() == 36.0


@pytest.mark.parametrize("weights", [[], [1.0], [1.0, 1.0, 1.0]])
def test_line_062_as_many_weights_as_targets(weights: list[float]) -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
        z = x * [1.0, 2.0]
    with pytest.raises(ValueError, match=f"has {len(weights)} entries for 2 targets"):
        tape.gradient([y, y], x, output_gradients=weights)
    assert tape.gradient(z, x, output_gradients=[1.0, 10.0]).numpy() == 21.0  # one vector is one target


def test_line_063_a_scalar_weight_spreads() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x, output_gradients=3.0).numpy().tolist() == [6.0, 12.0]


def test_line_064_wrong_weights() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as tape:
        y = x * x
    with pytest.raises(ValueError, match=re.escape("Incompatible shapes: [3] vs. [2]")):
        tape.gradient(y, x, output_gradients=np.ones(3))
    with pytest.raises(TypeError, match="has dtype float32, its target float64"):
        tape.gradient(y, x, output_gradients=np.ones(2, np.float32))
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]  # raised before any work


# ---- unconnected_gradients -------------------------------------------------------------------------------------------


def test_line_065_none_by_default() -> None:
    x, y = tg.Variable([2.0, 2.0]), tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        z = y * y
    for given in ({}, {"unconnected_gradients": "none"}, {"unconnected_gradients": tg.UnconnectedGradients.NONE}):
        assert tape.gradient(z, x, **given) is None


def test_line_066_zeros() -> None:
    x, y, whole = tg.Variable([2.0, 2.0], dtype="float32"), tg.Variable(3.0), tg.Variable([1, 2])
    with tg.GradientTape(persistent=True) as tape:
        z = y * y
    for given in ("zero", tg.UnconnectedGradients.ZERO):
        first, second = tape.gradient(z, [x, whole], unconnected_gradients=given)
        assert first.numpy().tolist() == [0.0, 0.0] and first.dtype == np.float32
        assert second.numpy().tolist() == [0, 0] and second.dtype == whole.dtype


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("nonsense", "Unknown value for unconnected_gradients: 'nonsense'"),
        (None, "Unknown value for unconnected_gradients: None"),
    ],
)
def test_line_067_unknown_values(value: Any, text: str) -> None:
    x = tg.Variable(1.0)
    with tg.GradientTape() as tape:
        y = x * x
    with pytest.raises(ValueError, match=re.escape(text)):
        tape.gradient(y, x, unconnected_gradients=value)


def test_line_068_zeros_through_stop_gradient() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = tg.stop_gradient(x) * 2.0
    assert tape.gradient(y, x, unconnected_gradients="zero").numpy() == 0.0


# ---- stop_recording, reset, stop_gradient ----------------------------------------------------------------------------


def test_line_069_stop_recording() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        with tape.stop_recording():
            y = x * x
        z = x * y
    assert tape.gradient(z, x).numpy() == 9.0


def test_line_070_stops_this_tape_only() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as a, tg.GradientTape() as b, a.stop_recording():
        y = x * x
    assert a.gradient(y, x) is None
    assert b.gradient(y, x).numpy() == 6.0


def test_line_071_nothing_to_stop() -> None:
    tape = tg.GradientTape()
    text = "Trying to stop recording a tape which is not recording."
    with pytest.raises(RuntimeError, match=re.escape(text)), tape.stop_recording():
        pass
    with tape:
        pass
    with pytest.raises(ValueError, match=re.escape("Tape is not recording.")), tape.stop_recording():
        pass
    x = tg.Variable(3.0)
    with tape:
        with tape.stop_recording():
            with tape.stop_recording():
                y = x * x
            y = y * x
        z = x * y
    assert tape.gradient(z, x).numpy() == 27.0


def test_line_072_watching_while_stopped() -> None:
    x = tg.constant(3.0)
    with tg.GradientTape() as tape:
        with tape.stop_recording():
            tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_line_073_gradients_while_stopped() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
        with tape.stop_recording():
            g = tape.gradient(y, x)
    assert g.numpy() == 6.0
    assert tape.gradient(g, x) is None


def test_line_074_reset() -> None:
    x = tg.constant(3.0)
    with tg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        z = x * x
        tape.watch(x)
        w = x**3
    assert tape.gradient([y, z, w], x).numpy() == 27.0
    with pytest.raises(ValueError, match=re.escape("Tape is not recording.")):
        tg.GradientTape().reset()


def test_line_075_stop_gradient() -> None:
    x, y = tg.Variable(2.0), tg.Variable(3.0)
    with tg.GradientTape() as outer, tg.GradientTape() as tape:
        z = tg.stop_gradient(x) * y * 3.0 + y * 0.0
        a = x * tg.stop_gradient(x)
    first, second = tape.gradient(z, [x, y])
    assert first is None and second.numpy() == 6.0
    assert outer.gradient(a, x).numpy() == 2.0


def test_dicts_go_together_by_their_keys() -> None:
    x, y = tg.Variable(1.0), tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        target = {"b": x * 1.0, "a": [{"d": y * 1.0, "c": x * y}]}
    weights = {"a": [{"c": 10.0, "d": 7.0}], "b": 5.0}
    assert [g.numpy() for g in tape.gradient(target, [x, y], weights)] == [25.0, 17.0]
    with pytest.raises(ValueError, match="The keys"):
        tape.gradient(target, [x, y], {"b": 1.0, "z": [{"c": 1.0, "d": 1.0}]})
    with tg.ForwardAccumulator({"x": x, "y": y}, {"y": 3.0, "x": 0.0}) as accumulator:
        z = x * y
    assert accumulator.jvp(z).numpy() == 3.0
    assert list(tape.gradient(x * 1.0, {"y": y, "x": x}, unconnected_gradients="zero")) == ["y", "x"]
