"""Lines 1 to 38: construction, watching, variables."""

from __future__ import annotations

import contextlib
import gc
import logging
import pickle
import re
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.tape import gradient_arguments

STILL = "Tape is still recording, This can happen if you try to re-enter an already-active tape."


def watched(value: Any, tape: tg.GradientTape) -> tg.Tensor:
    tensor = tg.constant(value)
    tape.watch(tensor)
    return tensor


# ---- construction and context ----------------------------------------------------------------------------------------


def test_line_001_arguments_may_be_positional() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape(True, False) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_line_002_unknown_keyword() -> None:
    text = "GradientTape.__init__() got an unexpected keyword argument 'foo'"
    with pytest.raises(TypeError, match=re.escape(text)):
        tg.GradientTape(foo=1)  # type: ignore[call-arg]


def test_line_003_the_context_gives_the_tape() -> None:
    tape = tg.GradientTape()
    with tape as inner:
        assert inner is tape


def test_line_004_entering_an_active_tape() -> None:
    tape = tg.GradientTape()
    with tape, pytest.raises(ValueError, match=re.escape(STILL)):
        tape.__enter__()


def test_line_005_reentering_goes_on() -> None:
    x = tg.constant(3.0)
    tape = tg.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0


def test_line_006_reentering_a_consumed_tape_starts_afresh() -> None:
    x = tg.constant(3.0)
    tape = tg.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0
    with tape:
        unwatched = x * x
        tape.watch(x)
        y = x**3
    assert tape.gradient([unwatched, y], x).numpy() == 27.0


def test_line_007_a_second_exit_is_tolerated() -> None:
    tape = tg.GradientTape()
    with tape:
        pass
    tape.__exit__(None, None, None)


def test_line_008_an_exception_leaves_the_tape_usable() -> None:
    x = tg.Variable(3.0)
    tape = tg.GradientTape()
    with pytest.raises(KeyError), tape:  # noqa: PT012
        y = x * x
        raise KeyError
    assert tape.gradient(y, x).numpy() == 6.0
    with tg.GradientTape() as after:
        z = x * 2.0
    assert after.gradient(z, x).numpy() == 2.0


def test_line_009_what_comes_after_the_block_is_not_recorded() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y * 2.0, x) is None


def test_line_010_tapes_nest() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape() as a, tg.GradientTape() as b:
        y = x * x
    assert a.gradient(y, x).numpy() == b.gradient(y, x).numpy() == 6.0
    with contextlib.ExitStack() as stack:
        tapes = [stack.enter_context(tg.GradientTape()) for _ in range(50)]
        y = x * x
    assert {float(tape.gradient(y, x)) for tape in tapes} == {6.0}


def test_line_011_recording_is_per_thread() -> None:
    x = tg.Variable(3.0)
    made: list[tg.Tensor] = []
    with tg.GradientTape() as tape:
        thread = threading.Thread(target=lambda: made.append(x * x))
        thread.start()
        thread.join()
    assert tape.gradient(made[0], x) is None
    assert "was not read while the tape recorded in this thread" in tape.explain(made[0], x)


def test_line_012_deleting_frees_the_record() -> None:
    x = tg.Variable(np.ones(3))
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    weak = weakref.ref(tape)
    del tape
    gc.collect()
    assert weak() is None
    assert y.numpy()[0] == 1.0


def test_line_013_a_tape_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="cannot pickle a GradientTape: it holds the operations"):
        pickle.dumps(tg.GradientTape())


# ---- watch -----------------------------------------------------------------------------------------------------------


def test_line_014_watch_takes_structures() -> None:
    a, b, c = tg.constant(1.0), tg.constant(2.0), tg.constant(3.0)
    v = tg.Variable(4.0, trainable=False)
    with tg.GradientTape() as tape:
        tape.watch([a, {"b": b, "c": (c,)}])
        tape.watch(v)
        y = a * b * c * v
    assert [g.numpy() for g in tape.gradient(y, [a, b, c, v])] == [24.0, 12.0, 8.0, 6.0]


@pytest.mark.parametrize(
    ("line", "thing", "start"),
    [
        (15, np.ones(3), "Passed in object [1. 1. 1.] of type 'ndarray', not tf.Tensor or tf.Variable or Extension"),
        (16, 3.0, "Passed in object 3.0 of type 'float', not tf.Tensor or tf.Variable or ExtensionType."),
        (17, None, "Passed in object None of type 'NoneType', not tf.Tensor or tf.Variable or ExtensionType."),
    ],
)
def test_line_015_to_017_what_cannot_be_watched(line: int, thing: Any, start: str) -> None:
    with tg.GradientTape() as tape, pytest.raises(ValueError, match=re.escape(start)) as caught:
        tape.watch(thing)
    assert "tg.constant" in str(caught.value)


def test_line_018_watch_before_entering() -> None:
    x = tg.constant(3.0)
    with pytest.raises(RuntimeError, match="the tape is not recording"):
        tg.GradientTape().watch(x)
    with tg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="the tape is not recording"):
        tape.watch(x)


def test_line_019_watch_after_exit_has_no_effect() -> None:
    x = tg.constant(3.0)
    with tg.GradientTape() as tape:
        y = x * x
    tape.watch(x)
    assert tape.gradient(y, x) is None


def test_line_020_integers_are_not_watched(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_arguments, "_counts", {})
    x = tg.constant(3)
    for _ in range(7):
        with caplog.at_level(logging.WARNING, "tapegen"), tg.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient(y, x) is None
    text = "The dtype of the watched tensor must be floating (e.g. float32), got int64"
    assert [record.getMessage() for record in caplog.records] == [text] * 5


def test_line_021_watching_is_local() -> None:
    x = tg.constant(3.0)
    with tg.GradientTape() as outer, tg.GradientTape() as inner:
        inner.watch(x)
        y = x * x
    assert inner.gradient(y, x).numpy() == 6.0
    assert outer.gradient(y, x) is None


def test_line_022_watching_an_intermediate() -> None:
    x = tg.constant(3.0)
    with tg.GradientTape() as tape:
        y = x * x
        tape.watch(y)
        z = y * y
    first, second = tape.gradient(z, [y, x])
    assert first.numpy() == 18.0 and second is None


def test_line_023_watching_late() -> None:
    x = tg.constant(3.0)
    with tg.GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y + x**3
    assert tape.gradient(z, x).numpy() == 27.0


def test_line_024_watching_twice() -> None:
    with tg.GradientTape() as tape:
        x = watched(3.0, tape)
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_line_025_the_same_value_is_not_the_same_tensor() -> None:
    with tg.GradientTape() as tape:
        x = watched(3.0, tape)
        y = x * x
    assert tape.gradient(y, tg.constant(3.0)) is None


def test_line_026_rebinding_makes_a_new_source() -> None:
    with tg.GradientTape() as tape:
        x = watched(3.0, tape)
        x = x * 2
        y = x * x
    assert tape.gradient(y, x).numpy() == 12.0


def test_line_027_trivial_functions_make_distinct_tensors() -> None:
    with tg.GradientTape() as tape:
        a = watched(1.0, tape)
        b = tg.identity(a)
        c = a + 0.0
        d = a * 1.0
        e = a - 0.0
        f = a.reshape(a.shape)
        y = 2.0 * b + 3.0 * c + 3.0 * d + 3.0 * e + 3.0 * f
    got = [g.numpy() for g in tape.gradient(y, [b, c, d, e, f])]
    assert got == [2.0, 3.0, 3.0, 3.0, 3.0]


# ---- variables -------------------------------------------------------------------------------------------------------


def test_line_028_trainable_variables_are_watched() -> None:
    v = tg.Variable(10.0)
    fixed = tg.Variable(3.0, trainable=False)
    c = tg.constant(2.0)
    with tg.GradientTape() as tape:
        y = v * v + fixed * fixed + c * c
    assert tape.gradient(y, v).numpy() == 20.0
    with tg.GradientTape() as tape:
        y = v * v + fixed * fixed + c * c
    assert tape.gradient(y, [fixed, c]) == [None, None]


def test_line_029_watch_accessed_variables_off() -> None:
    a, b = tg.Variable(2.0), tg.Variable(3.0)
    with tg.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y = a * a + b * b
    names = tape.watched_variables()
    first, second = tape.gradient(y, [a, b])
    assert first.numpy() == 4.0 and second is None
    assert len(names) == 1 and names[0] is a


def test_line_030_watching_a_variable_that_is_not_trainable() -> None:
    v = tg.Variable(2.0, trainable=False)
    with tg.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    assert tape.watched_variables()[0] is v
    assert tape.gradient(y, v).numpy() == 4.0


def test_line_031_watched_variables_in_order_of_construction() -> None:
    a, b, c = (tg.Variable(1.0, name=name) for name in "abc")
    with tg.GradientTape() as tape:
        _ = c * a * b
    assert [variable.name for variable in tape.watched_variables()] == ["a", "b", "c"]


def test_line_032_watched_variables_before_after_and_reset() -> None:
    v, w = tg.Variable(2.0), tg.Variable(3.0)
    tape = tg.GradientTape()
    assert tape.watched_variables() == ()
    with tape:
        y = v * v
    tape.gradient(y, v)
    assert len(tape.watched_variables()) == 1
    with tape:
        _ = w * w
        assert tape.watched_variables()[0] is w and len(tape.watched_variables()) == 1
        tape.reset()
        assert tape.watched_variables() == ()
        _ = v * w
        assert len(tape.watched_variables()) == 2


def test_line_033_reading_while_stopped_does_not_watch() -> None:
    v = tg.Variable(2.0)
    with tg.GradientTape() as tape, tape.stop_recording():
        _ = v * v
    assert tape.watched_variables() == ()


def test_line_034_assignment_is_not_differentiated() -> None:
    x, v = tg.Variable(3.0), tg.Variable(0.0)
    with tg.GradientTape() as tape:
        v.assign_add(x)
        y = v**2
    assert tape.gradient(y, x) is None

    v = tg.Variable([1.0, 2.0, 3.0])
    x = tg.Variable(4.0)
    with tg.GradientTape(persistent=True) as tape:
        v[0] = x
        y = v * v
    assert tape.gradient(y, v).numpy().tolist() == [8.0, 4.0, 6.0]
    assert tape.gradient(y, x) is None


def test_line_035_values_are_those_when_read() -> None:
    v = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = v * v
    v.assign(100.0)
    assert tape.gradient(y, v).numpy() == 4.0


def test_line_036_a_variable_as_target() -> None:
    v, w = tg.Variable(2.0), tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        _ = v * w
    assert tape.gradient(v, v).numpy() == 1.0
    assert tape.gradient(v, w) is None


def test_line_037_replacing_a_variable_by_a_tensor() -> None:
    x: Any = tg.Variable(2.0)
    got = []
    for _ in range(2):
        with tg.GradientTape() as tape:
            y = x + 1
        got.append(tape.gradient(y, x))
        x = x + 1
    assert got[0].numpy() == 1.0 and got[1] is None


def test_line_038_max_of_variables() -> None:
    variables = [tg.Variable(2.0), tg.Variable(3.0), tg.Variable(5.0)]
    with tg.GradientTape() as tape:
        y = max(variables)
    got = tape.gradient(y, variables)
    assert got[:2] == [None, None] and got[2].numpy() == 1.0


def test_parts_of_a_variable_are_assigned() -> None:
    v, x = tg.Variable([1.0, 2.0, 3.0]), tg.Variable(4.0)
    with tg.GradientTape(persistent=True) as tape:
        part = v[1:]
        y = part * part
        assert part.assign([5.0, x]) is v
        z = v[2] * v[0].assign_add(x)
        w = v[tg.constant(1)] * 2.0
    v[:2].assign_sub([1.0, 1.0])
    assert v.numpy().tolist() == [4.0, 4.0, 4.0]
    assert tape.gradient(y, v).numpy().tolist() == [0.0, 4.0, 6.0]
    assert tape.gradient(z, v).numpy().tolist() == [4.0, 4.0, 18.0]  # v[2] * v with v = [5, 5, 4]
    assert tape.gradient(w, v).numpy().tolist() == [0.0, 2.0, 0.0]
    assert tape.gradient(z, x) is None and "assigned to the variable" in tape.explain(z, x)
    with pytest.raises(tg.BadArgument, match="cannot be assigned"):
        v[0].assign(1j)
    with pytest.raises(tg.BadArgument, match="cannot be assigned"):
        v[:2].assign([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="broadcast"):
        v[:2].assign_add([1.0, 2.0, 3.0])
    assert v.numpy().tolist() == [4.0, 4.0, 4.0]


def test_constants_of_tensors_are_tensors() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(persistent=True) as tape:
        same = tg.constant(x * 3.0)
        rows = tg.constant([x[0], 5.0], shape=(2, 1), dtype="float32")
        spread = tg.constant(x[1], shape=(3,))
        state = tg.Variable([x[0], 2.0], name="state") * 2.0
    assert tape.gradient(same, x).numpy().tolist() == [3.0, 3.0]
    assert tape.gradient(rows, x).numpy().tolist() == [1.0, 0.0] and rows.dtype == np.float32
    assert tape.gradient(spread, x).numpy().tolist() == [0.0, 3.0]
    assert tape.gradient(state, x) is None
    assert "assigned to the variable 'state'" in tape.explain(state, x)
