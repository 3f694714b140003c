"""Lines 105, 107 and 108: errors with places, memory, overwritten arrays, threads; other things at the edge."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest

import tapegen as tg
import tapegen.tf as tf
from tapegen import nn
from tapegen.rules import registry
from tapegen.rules.helpers import require
from tapegen.tape.engine.state import STATE


@pytest.fixture
def ruleless(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.all_rules()  # those that wait for their modules must not be registered meanwhile
    monkeypatch.setattr(registry, "_RULES", {k: rule for k, rule in registry._RULES.items() if k is not np.unwrap})


def test_line_105_errors_show_the_line_of_the_user(ruleless: None) -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(), pytest.raises(tg.NotDifferentiable) as caught:
        float(x[0])
    assert "float(x[0])" in str(caught.value)
    assert "^" in str(caught.value)
    with tg.GradientTape() as tape:
        y = np.unwrap(x)
    with pytest.raises(tg.MissingRule) as missing:
        tape.gradient(y, x)
    assert missing.value.span is not None and missing.value.span.text() == "y = np.unwrap(x)"


def test_line_105_errors_of_rules_too(ruleless: None) -> None:
    @tg.pullback(np.unwrap)
    def unwrap(p, discont=None, *, out_bar):  # type: ignore[no-untyped-def]
        require(discont is not None, "np.unwrap needs discont here.", "Pass it.")
        return out_bar

    x = tg.Variable(np.ones(3))
    with tg.GradientTape() as tape:
        y = np.unwrap(x)
    with pytest.raises(tg.NotDifferentiable, match="needs discont here"):
        tape.gradient(y, x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.pad(x, 1, mode="empty"),
        lambda x: np.linalg.qr(x, mode="raw")[0],
        lambda x: np.linalg.qr(x, mode="complete")[0],
        lambda x: np.add(x, 1.0, where=[[True, False], [True, True]]),
    ],
)
@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
def test_line_105_calls_that_rules_refuse(call: Any) -> None:
    x = tg.Variable([[1.0, 2.0], [3.0, 5.0]])
    with tg.GradientTape() as tape:
        y = call(x)
    with pytest.raises(tg.TapegenError) as caught:
        tape.gradient(y, x)
    assert caught.value.span is not None and "lambda x: np." in caught.value.span.text()


def test_line_039_dicts_of_other_kinds() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    ordered = tape.gradient(y, OrderedDict(b=x, a=[x]))
    assert isinstance(ordered, OrderedDict) and list(ordered) == ["b", "a"] and ordered["a"][0].numpy() == 4.0
    other = tape.gradient(y, defaultdict(list, k=x))
    assert isinstance(other, defaultdict) and other["k"].numpy() == 4.0 and other["new"] == []


@pytest.mark.parametrize(
    "leave",
    [
        lambda t: np.frompyfunc(np.sin, 1, 1)(t),
        lambda t: np.frompyfunc(lambda a, b: a + b, 2, 1).reduce(t),
        lambda t: np.array([1, 2], dtype=object) * t,
        lambda t: t.astype(object),
    ],
)
def test_line_055_functions_of_python_objects(leave: Any) -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(), pytest.raises(tg.NotDifferentiable, match="makes Python objects of a tensor") as caught:
        leave(x)
    assert caught.value.span is not None and caught.value.span.file == __file__
    leave(tg.constant([1.0, 2.0]))  # outside a tape it leaves freely


def test_line_107_a_gradient_drops_the_record() -> None:
    x = tg.Variable(np.ones(1000))
    with tg.GradientTape() as tape:
        y = np.sin(x)
        kept = weakref.ref(y)
        z = np.sum(y * y)
    del y
    gc.collect()
    before = len(tape._records or ())
    assert before == 3
    tape.gradient(z, x)
    assert tape._records is None
    assert kept() is None


def test_line_107_only_what_is_read_is_kept() -> None:
    x = tg.Variable(np.ones(1000))
    with tg.GradientTape() as tape:
        y = x + 1.0
        z = np.sum(-y)
    sizes = [arg.strides for record in tape._records or () for arg in record.args if isinstance(arg, np.ndarray)]
    assert sizes and not any(any(strides) for strides in sizes)
    assert tape.gradient(z, x).numpy()[0] == -1.0
    with tg.GradientTape(persistent=True) as tape:
        y = x + 1.0
    assert any(np.shares_memory(arg, x._value) for record in tape._records or () for arg in record.args[:1])
    assert tape.gradient(y, x).numpy()[0] == 1.0


@pytest.mark.parametrize("relu", [nn.relu, tf.nn.relu, tf.nn.leaky_relu])
def test_line_107_of_pieces_only_the_choice_is_kept(relu: Any) -> None:
    x = tg.Variable(np.ones(10_000))
    with tg.GradientTape() as tape:
        y = relu(relu(relu(x + 0.1) + 0.1) + 0.1)
    arrays = [arg for record in tape._records or () for arg in record.args if isinstance(arg, np.ndarray)]
    kept = [array.dtype for array in arrays if any(array.strides)]
    assert kept == [np.bool_] * 3
    assert tape.gradient(y, x).numpy()[0] == 1.0


def test_line_107_forms_without_rules_are_dropped_at_once() -> None:
    x = tg.Variable(np.ones(10))
    gc.collect()
    gc.disable()
    try:
        for is_asked in (True, False):
            with tg.GradientTape() as tape:
                t = x * 2.0
                kept = weakref.ref(t._value)
                y = np.sum(t, initial=1.0)
            del t
            if is_asked:
                assert tape.gradient(y, x).numpy()[0] == 2.0
            else:
                del tape
            assert kept() is None
    finally:
        gc.enable()


def test_line_107_ten_thousand_tapes_leak_nothing() -> None:
    x = tg.Variable(np.ones(10))

    def step(persistent: bool) -> None:
        with tg.GradientTape(persistent=persistent) as tape:
            y = np.sum(np.sin(x) * x + x[1:3][0])
        tape.gradient(y, x)

    def memory() -> int:
        for _ in range(800):
            step(False), step(True)
        return tracemalloc.get_traced_memory()[0]

    gc.collect()
    gc.disable()  # nothing waits for the collector of cycles
    tracemalloc.start()
    try:
        memory()  # the free lists of the interpreter fill up
        before, objects = memory(), len(gc.get_objects())
        assert memory() - before < 2_000
        assert len(gc.get_objects()) - objects < 100
    finally:
        tracemalloc.stop()
        gc.enable()
    assert STATE.active == []


@pytest.mark.whole
def test_line_107_really_ten_thousand() -> None:
    x = tg.Variable(np.ones(3))

    def memory(count: int) -> int:
        for _ in range(count):
            with tg.GradientTape() as tape:
                y = np.sum(x * x)
            tape.gradient(y, x)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        memory(1_000)  # the free lists of the interpreter fill up
        before = memory(1_000)
        assert memory(10_000) - before < 2_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("function", [lambda x, a: x * a, lambda x, a: x @ a, lambda x, a: np.where(a > 1, x, a * x)])
def test_line_108_overwritten_arrays_do_not_matter(function: Any) -> None:
    x = tg.Variable([1.0, 2.0, 3.0])
    a = np.array([4.0, 5.0, 6.0])
    with tg.GradientTape() as tape:
        y = function(x, a)
    want = np.where(a > 1, 1.0, 4.0) if y.shape and y.numpy()[0] == 1.0 else a.copy()
    a[:] = -100.0
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), want)


def test_d56_arrays_that_are_overwritten_while_recording() -> None:
    x, w = tg.Variable([1.0, 1.0, 1.0]), np.full(3, 2.0)
    with tg.GradientTape(persistent=True) as tape:
        y = 0.0
        for k in range(3):
            w[k] = k + 5.0
            y = y + np.sum(x * w)
        while w[0] < 7.0:
            w += 1.0
            y = y + np.sum(x[:2] * w[:2])
        if w[0] == 7.0:
            w[:] = 0.0
    for _ in range(2):
        assert tape.gradient(y, x).numpy().tolist() == [15.0 + 13.0, 14.0 + 15.0, 11.0]
        w += 1.0
    for fixed in (x.numpy(), y.numpy()):
        assert not np.asarray(fixed).flags.writeable or not np.shares_memory(fixed, x.numpy())


def test_line_108_overwritten_indices_and_lists() -> None:
    x = tg.Variable([1.0, 2.0, 3.0])
    rows, parts = np.array([0, 0, 2]), [np.ones(2), np.ones(2)]
    with tg.GradientTape(persistent=True) as tape:
        y = x[rows]
        z = np.sum(np.stack([x[:2], *parts]) * 2.0)
        w = np.take(x, rows)
    rows[:] = 1
    parts[0][:] = 7.0
    parts.clear()
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 0.0, 1.0]
    assert tape.gradient(w, x).numpy().tolist() == [2.0, 0.0, 1.0]
    assert tape.gradient(z, x).numpy().tolist() == [2.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("function", "array", "want"),
    [
        (lambda x, a: x[None, a], [0, 0, 2], [2.0, 0.0, 1.0]),
        (lambda x, a: np.take(x, indices=a), [0, 0, 2], [2.0, 0.0, 1.0]),
        (lambda x, a: np.dot(x, b=a), [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]),
        (lambda x, a: np.clip(x, a_min=a, a_max=None), [0.0, 0.0, 5.0], [1.0, 1.0, 0.0]),
        (lambda x, a: np.average(x, weights=a), [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]),
        (lambda x, a: tg.recompute_grad(lambda x, a: x * a)(x, a), [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]),
        (lambda x, a: x * a.view(np.recarray), [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]),
    ],
)
def test_line_108_overwritten_in_tuples_keywords_and_calls(function: Any, array: Any, want: Any) -> None:
    x, a = tg.Variable([1.0, 2.0, 3.0]), np.array(array)
    with tg.GradientTape() as tape:
        y = function(x, a)
    a[:] = 1
    assert tape.gradient(y, x).numpy().tolist() == want


def test_line_108_what_runs_again_finds_old_values() -> None:
    x, w = tg.Variable(2.0), tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = tg.recompute_grad(lambda x: x.read_value() * x * w)(x)
    x.assign(100.0), w.assign(100.0)
    assert [g.numpy() for g in tape.gradient(y, [x, w])] == [12.0, 4.0]
    assert (x.numpy(), w.numpy()) == (100.0, 100.0)


def test_line_108_constants_and_variables_are_copies() -> None:
    a = np.array([1.0, 2.0])
    x, v = tg.constant(a), tg.Variable(a)
    a[:] = 100.0
    assert x.numpy().tolist() == v.numpy().tolist() == [1.0, 2.0]
    with tg.GradientTape() as tape:
        y = v * v
        before = v.numpy()
    v.assign([5.0, 6.0])
    assert before.tolist() == [1.0, 2.0]
    assert tape.gradient(y, v).numpy().tolist() == [2.0, 4.0]
    v.assign(a)
    a[:] = 0.0
    assert v.numpy().tolist() == [100.0, 100.0]


def test_line_108_what_leaves_is_read_only() -> None:
    x = tg.constant([1.0, 2.0])
    for left in (x.numpy(), np.asarray(x), (x * 2.0).numpy()):
        with pytest.raises(ValueError, match="read-only"):
            left[0] = 5.0
    copied = np.array(x)
    copied[0] = 5.0
    assert x.numpy()[0] == 1.0


def test_line_108_results_do_not_share_with_arrays() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = tg.Variable([1.0, 1.0])
    with tg.GradientTape() as tape:
        whole = np.broadcast_arrays(x, a)
        y = np.sum(whole[0] * whole[1])
    a[:] = 100.0
    assert tape.gradient(y, x).numpy().tolist() == [4.0, 6.0]


def test_threads_have_tapes_of_their_own() -> None:
    results: dict[int, list[float]] = {}

    def work(number: int) -> None:
        x = tg.Variable(float(number))
        results[number] = []
        for _ in range(50):
            with tg.GradientTape() as outer:
                with tg.GradientTape() as inner:
                    y = x**3
                first = inner.gradient(y, x)
            results[number].append(float(outer.gradient(first, x)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [6.0 * number] * 50 for number in range(1, 5)}


def test_a_tape_is_used_in_the_thread_that_records_it() -> None:
    x = tg.Variable(3.0)
    caught: list[Exception] = []

    def elsewhere(act: Any) -> None:
        try:
            act()
        except RuntimeError as error:
            caught.append(error)

    with tg.GradientTape() as tape:
        y = x * x
        for act in (lambda: tape.gradient(y, x), lambda: tape.__exit__(None, None, None)):
            thread = threading.Thread(target=elsewhere, args=(act,))
            thread.start()
            thread.join()
        z = y * x
    assert [str(error)[:35] for error in caught] == ["the tape records in another thread:"] * 2
    assert STATE.active == []
    assert tape.gradient(z, x).numpy() == 27.0


def test_an_exception_leaves_no_recorder() -> None:
    x = tg.Variable(1.0)
    with pytest.raises(ZeroDivisionError), tg.GradientTape(), tg.GradientTape() as inner, inner.stop_recording():
        _ = 1 / 0
    assert STATE.active == []
    with pytest.raises(KeyError), tg.ForwardAccumulator(x, 1.0), tg.GradientTape():  # noqa: PT012
        _ = x * x
        raise KeyError
    assert STATE.active == []


def test_an_error_in_a_gradient_leaves_no_recorder(ruleless: None) -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as outer:
        with tg.GradientTape() as tape:
            y = np.unwrap(x) * x
        with pytest.raises(tg.MissingRule):
            tape.gradient(y, x)
        z = x * x
    assert STATE.active == []
    assert outer.gradient(z, x).numpy().tolist() == [2.0, 4.0]
