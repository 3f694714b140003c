"""Line 104 and `tape.source`: looking at what was recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.oracle import floating
from tests.tape.test_programs import PROGRAMS, recorded, results
from tests.test_programs import Program


def layer() -> tuple[tg.GradientTape, tg.Tensor, list[tg.Variable]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3))
    w, b = tg.Variable(rng.normal(size=(3, 2)), name="w"), tg.Variable(np.zeros(2), name="b")
    with tg.GradientTape(persistent=True) as tape:
        y = np.tanh(x @ w + b)
        loss = np.mean((y[1:] - 0.5) ** 2)
    return tape, loss, [w, b]


def test_source_prints_both_sweeps() -> None:
    tape, loss, variables = layer()
    source = tape.source(loss, variables)
    assert source.text.startswith("def recorded(w, b, c):\n    t = c @ w\n    t_1 = t + b\n    t_2 = np.tanh(t_1)\n")
    assert "def recorded_record(w, b, c):" in str(source)
    assert "w_bar = c.T @ t_1_bar" in source.backward
    got = [bar.numpy() for bar in source.run()]
    want = [bar.numpy() for bar in tape.gradient(loss, variables)]
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert isinstance(tape.source(loss, {"w": variables[0]}).run()["w"], tg.Tensor)


def test_source_of_a_tape_that_forgets() -> None:
    x, c = tg.Variable([1.0, 2.0], name="x"), np.array([5.0, 6.0])
    with tg.GradientTape() as tape:
        y = np.sum(np.sin(x) + c)
    source = tape.source(y, [x])
    assert "x_bar" in source.backward
    with pytest.raises(tg.BadArgument, match=r"did not keep the values of c(.|\n)*persistent"):
        source.run()
    assert tape.gradient(y, x).numpy().tolist() == np.cos([1.0, 2.0]).tolist()


def test_source_refuses_what_has_no_text() -> None:
    x = tg.Variable(1.5)
    with tg.GradientTape() as tape:
        y = tg.grad_pass_through(np.round)(x)
    with pytest.raises(tg.NotDifferentiable, match="'round' has a custom gradient"):
        tape.source(y, x)


ROUNDED = dict.fromkeys(
    """language/if_elif_else-at_top language/np_linalg-in_branch language/np_products-at_top
    language/np_products-in_while language/overwritten_in_loop language/recursive_closures-in_for
    language/walrus-in_while science/force_field science/horn_schunck science/tsne_affinity
    textbook/conjugate_gradient textbook/continued_fraction_recursive textbook/logistic_irls textbook/lotka_volterra
    textbook/smooth_life users/quantal_response""".split(),
    8,
) | {  # what is added up nearly cancels; 34, 32 and 9 measured
    "users/picture_registration": 64,
    "textbook/adagrad": 64,
    "science/hull_white_bond": 16,
}
"""Programs whose texts round otherwise than the tape, with units in the last place: they take `-out * out` for the
derivative of `1.0 / x`, multiply by copies of the tape's views, which BLAS may round differently, add at once at
repeated places what the tape adds to zeros first, or write `2.0 * x` for a sum of equal terms."""


def check(program: Program) -> None:
    found = recorded(program)
    if found is None:
        return
    tape, sources, value = found
    outs = results(value)
    targets = [outs[path] for path in floating(program.plain[0]) if isinstance(outs[path], tg.Tensor)]
    watched = list(sources.values())
    with np.errstate(all="ignore"):
        want = tape.gradient(targets, watched, unconnected_gradients="zero")
        try:
            got = tape.source(targets, watched).run()
        except tg.NotDifferentiable as error:
            if "has a custom gradient, which has no source" not in error.reason:  # derivatives inside the program
                raise
            return
    for mine, theirs in zip(got, want, strict=True):
        if program.name in ROUNDED:
            np.testing.assert_array_max_ulp(mine.numpy(), theirs.numpy(), ROUNDED[program.name])
        else:
            np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def constants_in_a_row(x: Any) -> Any:
    return 0.1 * (0.7 * (0.3 * np.sin(0.6 * x)))


def constants_between(x: Any) -> Any:
    for _ in range(5):
        x = x - 0.1 * x * x
    return 0.7 * x


def quotients(x: Any) -> Any:
    return np.sin(0.3 * (x / 10)) / 1.4142135623730951


@pytest.mark.parametrize("body", [constants_in_a_row, constants_between, quotients])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_source_multiplies_numbers_in_the_order_of_the_sweep(body: Callable[[Any], Any], dtype: str) -> None:
    x = tg.Variable(np.random.default_rng(0).uniform(0.5, 1.5, 200), dtype=dtype)
    with tg.GradientTape(persistent=True) as tape:
        y = body(x)
    np.testing.assert_array_equal(tape.source(y, [x]).run()[0].numpy(), tape.gradient(y, x).numpy())


def test_a_quotient_by_zero() -> None:
    x = tg.Variable([1.0, 0.0, -2.0])
    with np.errstate(divide="ignore", invalid="ignore"), tg.GradientTape() as tape:
        y = x / 0
    assert tape.gradient(y, x).numpy().tolist() == [np.inf] * 3


def test_powers_of_numbers_round_as_those_of_plain_numbers() -> None:
    for value in np.random.default_rng(0).uniform(0.1, 1.0, 100):
        x = tg.constant(value) * 1.0  # np.power may round otherwise than ** does
        assert (x**3).numpy() == value**3
        assert np.power(x, 3).numpy() == np.power(value, 3)


@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in PROGRAMS[2::6]])
def test_source_runs_to_the_same_bits(program: Program) -> None:
    check(program)


@pytest.mark.whole
@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in PROGRAMS])
def test_source_of_all_programs(program: Program) -> None:
    check(program)


# ---- explain ---------------------------------------------------------------------------------------------------------


def why(body: Callable[[tg.GradientTape, Any], Any], source: Any, **options: Any) -> str:
    """What a tape says after it has answered None."""
    with tg.GradientTape(**options) as tape:
        target = body(tape, source)
    assert tape.gradient(target, source) is None
    return tape.explain(target, source)


def in_a_thread(tape: tg.GradientTape, x: Any) -> Any:
    made: list[Any] = []
    _ = x * 1.0
    thread = threading.Thread(target=lambda: made.append(x * x))
    thread.start()
    thread.join()
    return made[0]


def while_stopped(tape: tg.GradientTape, x: Any) -> Any:
    _ = x * 1.0
    with tape.stop_recording():
        return x * x


def assigned(tape: tg.GradientTape, x: Any) -> Any:
    v = tg.Variable(0.0, name="state")
    v.assign_add(x)
    return v * v


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda tape, x: tg.stop_gradient(x) * 2.0, "it is stopped by stop_gradient"),
        (lambda tape, x: tg.constant((x * 2.0).numpy()) * 3.0, "it leaves through .numpy()"),
        (lambda tape, x: tg.cast(tg.cast(x * 2.0, "int64"), "float64"), "whose result is not floating"),
        (lambda tape, x: np.round(x * 2.0) * 3.0, "np.round, which has no derivative by definition"),
        (lambda tape, x: np.floor(x * 2.0) * 3.0, "floor, which has no derivative by definition"),
        (lambda tape, x: x > 1.0, "The target has the dtype bool"),
        (assigned, "it is assigned to the variable 'state'"),
        (while_stopped, "The target was made while recording was stopped."),
        (in_a_thread, "in another thread"),
        (lambda tape, x: (x * 1.0, tg.Variable(2.0) * 2.0)[1], "nothing that it was made from depends on the source"),
        (lambda tape, x: tg.Variable(2.0) * 2.0, "was not read while the tape recorded"),
    ],
)
def test_line_104_reasons(body: Any, says: str) -> None:
    assert says in why(body, tg.Variable(1.7, name="x"))


def test_line_104_the_line_of_the_user() -> None:
    text = why(lambda tape, x: tg.stop_gradient(x) * 2.0, tg.Variable(1.0))
    assert f"{__file__}:" in text and "why(lambda tape, x" in text


def test_only_reasons_between_source_and_target_count() -> None:
    x, w = tg.Variable(1.7), tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        stopped = tg.stop_gradient(x * 3.0)
        elsewhere = stopped * w
        whole = tg.cast(tg.cast(x * 2.0, "int64"), "float64") * w
        floor = np.floor(x) * w
    text = tape.explain(whole, x)
    assert "whose result is not floating" in text and "stop_gradient" not in text and "floor" not in text
    text = tape.explain(elsewhere, x)
    assert "stop_gradient" in text and "not floating" not in text
    text = tape.explain(floor, x)
    assert "floor" in text and "stop_gradient" not in text and "not floating" not in text


def test_line_104_what_is_not_watched() -> None:
    def square(tape: tg.GradientTape, x: Any) -> Any:
        return x * x

    assert "is not trainable" in why(square, tg.Variable(1.0, trainable=False))
    assert "watch_accessed_variables=False" in why(square, tg.Variable(1.0), watch_accessed_variables=False)
    assert "a tensor that was not watched" in why(square, tg.constant(1.0))
    assert "The source has the dtype int64" in why(square, tg.constant(1))


def test_line_104_outside_and_connected() -> None:
    x = tg.Variable(3.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
        assert "there is a gradient" in tape.explain(y, x)
    late = y * 2.0
    assert tape.explain(late, x) == "The target was made outside the `with` block of the tape."
    assert "there is a gradient" in tape.explain(y, x)
    assert tape.explain(x, x) == "The target is the source: the gradient is 1."


def test_line_104_a_tape_that_has_forgotten() -> None:
    w = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = w * w
    assert "there is a gradient" in tape.explain(y, w)
    tape.gradient(y, w)
    reason = "The tape has been used and has released its record: call this first, or use a persistent tape."
    assert tape.explain(y, w) == reason
    with tape:
        z = tg.constant(1.0) * 1.0
    assert "was not read" in tape.explain(z, w)
