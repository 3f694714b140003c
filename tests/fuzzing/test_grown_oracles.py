"""What the oracles of grown programs take for true where precision, complex steps or tensors do something else."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import tapegen as tg
from tests.grown.checks import NAN, RIGHT, WRONG, OutOfTime, judge, limited
from tests.grown.grow import grown
from tests.grown.reference import Reference, slope
from tests.grown.values import is_real, leaves

NARROW = {
    "a copy in another dtype": (
        "w = np.asarray(v, dtype=np.float32)\n    w[0] = 3.0\n    return np.sum(v * v)",
        "2 * v",
    ),
    "the array itself": ("w = np.asarray(v, dtype=np.float64)\n    w[0] = 3.0 * x\n    return np.sum(v * v)", "other"),
    "a number of a type that is asked for": (
        "b = x * np.float32(0.5)\n    if isinstance(b, float):\n        v[0] = x\n    return np.sum(v * v)",
        "2 * v",
    ),
}


def module(body: str, arguments: str = "np.array([1.2, -0.7, 0.4]), 0.65") -> str:
    return f"import numpy as np\n\n\ndef f(v, x):\n    {body}\n\n\ndef arguments():\n    return {arguments}\n"


@pytest.mark.parametrize("name", NARROW)
def test_single_precision_is_followed_as_it_is(name: str) -> None:
    body, expected = NARROW[name]
    reference = Reference(module(body))
    v = np.array([1.2, -0.7, 0.4])
    wanted = 2 * v if expected == "2 * v" else np.array([0.0, -1.4, 0.8])
    np.testing.assert_allclose(reference.slopes[0], wanted, atol=1e-4)
    assert np.isfinite(reference.slopes[1])
    reference.close()
    assert judge(module(body), ("reverse", "forward", "jacobian")).kind == RIGHT


def test_rounding_that_decides_has_no_derivative() -> None:
    reference = Reference(module("return x * x if x < np.asarray(x, dtype=np.float32) else v[0] * x"))
    assert np.isnan(reference.slopes[1]) or abs(reference.slopes[1]) > 1.0
    reference.close()


@pytest.mark.parametrize("curvature", [0.0, 3.0, 30.0])
def test_small_kinks_are_found_under_a_curvature(curvature: float) -> None:
    assert np.isnan(slope(lambda t: 2.0 * t + 1e-3 * abs(t) + curvature * t * t, 0.0))
    assert slope(lambda t: 2.0 * t + curvature * t * t, 0.0) == pytest.approx(2.0)


EQUAL = "v[:] = v[0] * v[0] * 2.3\n    v[0] = np.std(v)\n    return np.sum(v[:2]) * x"


def test_a_gradient_that_rounding_decides_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(EQUAL, "np.array([1.1, 1.13, 0.23]), 1.47")
    assert judge(text, ("reverse",)).kind == NAN
    drawn = np.random.default_rng(3)
    right = tg.Differentiable.value_and_grad
    monkeypatch.setattr(
        tg.Differentiable,
        "value_and_grad",
        lambda *args: (lambda v, g: (v, (g[0] + drawn.uniform(1.0, 2.0), g[1])))(*right(*args)),
    )
    assert judge(text, ("reverse",)).kind == WRONG


def test_errors_in_single_precision_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(NARROW["a copy in another dtype"][0])
    right = tg.Differentiable.value_and_grad
    monkeypatch.setattr(
        tg.Differentiable, "value_and_grad", lambda *args: (lambda v, g: (v, (g[0] * 1.01, g[1])))(*right(*args))
    )
    assert judge(text, ("reverse",)).kind == WRONG


def test_complex_steps_count_where_they_agree_with_differences() -> None:
    small = "return np.sum(v * 1e3) + x * np.sum(np.abs(v)) * 1e-3"
    assert judge(module(small), ("reverse", "complex")).kind == RIGHT
    reference = Reference(module("return np.sum(np.sin(v) * np.exp(v)) * x"))
    assert all(np.all(doubt < 1e-6) for doubt in reference.doubts)
    reference.close()


def test_programs_that_need_changes_in_place_are_not_run_on_tensors() -> None:
    held = module("out = {'a': v}\n    out['a'] *= -1.57\n    return np.sum(v) ** 2 + x * x")
    assert judge(held, ("tape",)).kind == RIGHT


@pytest.mark.parametrize(
    "body", ["out = {'a': v}\n    out['a'] *= x\n    return np.sum(out['a'])", "x *= 2.0\n    return x"]
)
def test_others_are(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = tg.GradientTape.gradient
    assert judge(module(body), ("tape",)).kind == RIGHT
    monkeypatch.setattr(
        tg.GradientTape,
        "gradient",
        lambda *args: [None if part is None else part * 1.01 for part in right(*args)],
    )
    assert judge(module(body), ("tape",)).kind == WRONG


def test_time_is_that_of_the_process() -> None:
    with limited(0.2):
        time.sleep(0.4)  # as on a machine that is busy with something else
    with pytest.raises(OutOfTime), limited(0.2):
        sum(0.0 for _ in itertools.count())


def test_arguments_are_not_at_the_bounds_of_templates() -> None:
    for seed in range(200):
        names: dict[str, object] = {}
        exec(grown(seed, 1).text(), names)
        given = names["arguments"]()  # type: ignore[operator]
        for leaf in leaves(given):
            if is_real(leaf):
                assert np.all(np.asarray(leaf, dtype=float) * 2 % 1 != 0), seed
