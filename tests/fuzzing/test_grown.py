"""Programs grown by execution (`tests/grown`): some of them, and whether each oracle finds what is planted."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import api
from tapegen.pipeline.artifacts import generated_text
from tests.grown import checks
from tests.grown.campaign import Campaign, report
from tests.grown.checks import CHEAP, FINE, INTERNAL, RIGHT, TIMEOUT, WRONG, judge
from tests.grown.grow import grown
from tests.grown.known import KNOWN
from tests.grown.program import Program as Grown
from tests.grown.program import Statement
from tests.grown.reference import Reference, slope
from tests.grown.shrink import shrunk

SIZE = 5
PLAIN = """
import numpy as np


def f(v, x):
    w = v * 1.0
    w[0] += x
    v[1] = 2.0 * x
    return np.sum(np.sin(w) * v) + x * x


def arguments():
    return np.array([0.5, 1.5, -0.7]), 0.3
"""
PURE = PLAIN.replace("    w[0] += x\n    v[1] = 2.0 * x\n", "    w = w + x\n")


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_small_grown_programs_are_right_or_refused(first: int) -> None:
    for seed in range(first, first + 25):
        text = grown(seed, SIZE).text()
        verdict = judge(text, CHEAP)
        if seed in KNOWN:
            assert verdict.kind not in FINE, f"seed {seed} fails no more: remove it from known.py"
        else:
            assert verdict.kind in FINE, f"seed {seed}: {verdict}\n{text}"


def test_a_seed_gives_one_program_and_most_are_differentiated() -> None:
    assert grown(11).text() == grown(11).text()
    assert grown(11).text() != grown(12).text()
    kinds = [judge(grown(seed, SIZE).text(), CHEAP).kind for seed in range(300, 320)]
    assert kinds.count(RIGHT) >= 10


@pytest.mark.parametrize("stage", [stage for stage in checks.STAGES if stage not in ("compiled", "cache")])
def test_what_is_right_is_said_to_be_right(stage: str) -> None:
    assert judge(PURE, ["reverse", stage]) == checks.Verdict(RIGHT)
    assert judge(PLAIN, ["reverse", stage]) == checks.Verdict(RIGHT)


def scaled(value: Any, factor: float) -> Any:
    """The same structure with other numbers."""
    if isinstance(value, tuple | list):
        return type(value)(scaled(part, factor) for part in value)
    return value * factor


def wrongly(method: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A method whose result is changed."""
    return lambda *args, **kwargs: change(method(*args, **kwargs))


DEFECTS = {
    "primal": (api.Differentiable, "__call__", lambda value: value + 1e-6),
    "reverse": (api.Differentiable, "value_and_grad", lambda pair: (pair[0], scaled(pair[1], 1.001))),
    "forward": (api.Differentiable, "jvp", lambda pair: (pair[0], pair[1] * 1.001)),
    "complex": (api.Differentiable, "value_and_grad", lambda pair: (pair[0], scaled(pair[1], 1 + 1e-7))),
    "jacobian": (tg, "jacobian", lambda made: wrongly(made, lambda parts: scaled(parts, 1.001))),
    "second": (tg, "hvp", lambda product: scaled(product, 1.001)),
    "tape": (tg.GradientTape, "gradient", lambda parts: scaled(parts, 1.001)),
    "written": (checks, "module_text", lambda text: text.replace("np.cos(", "np.sin(")),
    "loops": (
        generated_text,
        "compiled_text",
        lambda made: dataclasses.replace(made, text=made.text.replace("cos(", "sin(")),
    ),
    "chunks": (
        generated_text,
        "compiled_text",
        lambda made: dataclasses.replace(made, text=made.text.replace("cos(", "sin(")),
    ),
}


@pytest.mark.parametrize("stage", DEFECTS)
def test_each_oracle_finds_a_planted_error(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, change = DEFECTS[stage]
    monkeypatch.setattr(owner, name, wrongly(getattr(owner, name), change))
    stages = ["reverse", stage] if stage != "reverse" else [stage]
    verdict = judge(PURE, stages)
    assert (verdict.kind, verdict.stage) == (WRONG, stage)


def test_arguments_kinds_errors_and_time_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = api.Differentiable.value_and_grad

    def planted(fault: Callable[..., Any]) -> checks.Verdict:
        monkeypatch.setattr(api.Differentiable, "value_and_grad", fault)
        return judge(PLAIN, ["reverse"], seconds=0.5)

    def spoils(self: Any, v: Any, x: Any) -> Any:
        found = plain(self, v, x)
        v[2] += 1.0
        return found

    def endless(self: Any, *args: Any) -> Any:
        while True:
            pass

    assert "arguments after" in planted(spoils).detail
    assert "of another kind" in planted(lambda self, *args: (np.array(1.0), plain(self, *args)[1])).detail
    assert "shape" in planted(lambda self, *args: (plain(self, *args)[0], (np.zeros(2), 0.0))).detail
    assert planted(lambda self, *args: {}["missing"]).kind == INTERNAL
    assert planted(endless).kind == TIMEOUT


def test_points_without_a_derivative_are_passed_over() -> None:
    assert np.isnan(slope(abs, 0.0))
    assert np.isnan(slope(lambda x: abs(x - 1e-4), 1e-4))
    assert np.isnan(slope(lambda x: float(x > 0), 0.0))
    assert slope(lambda x: np.exp(x), 1.0) == pytest.approx(1.0, abs=1e-9)
    reference = Reference(PLAIN.replace("np.sin(w)", "np.abs(w - 0.8)"))
    assert np.isnan(reference.slopes[0][0])
    reference.close()


def test_a_failing_program_is_made_smaller() -> None:
    program = grown(11)
    program.body.insert(2, Statement("for i in range(2):", [Statement("marked = 1"), Statement("other = 2")]))
    small = shrunk(program, lambda text: "marked" in text)
    assert small.text().count("\n") < 16
    assert "other" not in small.text()


@pytest.mark.whole
def test_a_campaign_reports_what_it_finds() -> None:
    results = list(Campaign(["reverse"], jobs=1).run(random.Random(1).randrange(10**6), 4))
    assert len(results) == 4
    assert "per 10,000" in report(results, 1.0)
    assert Grown([("v", "0.5")]).text().startswith("import")
