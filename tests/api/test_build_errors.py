"""An error of tapegen itself, while it derives or builds, is no error of the code that runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import errors
from tapegen.backend.numba.compiler import GeneratedCodeCompiler
from tapegen.loops import pipeline
from tapegen.pipeline import compile
from tapegen.pipeline.artifacts import generated_text
from tapegen.pipeline.passes import assembly, tangents

CALLS = {
    "value": lambda f, x: f(x),
    "gradient": lambda f, x: f.value_and_grad(x),
    "pullback": lambda f, x: f.vjp(x)[1](1.0),
    "tangent": lambda f, x: f.jvp((x,), (np.ones_like(x),)),
}


def scaled(x: np.ndarray) -> float:
    x[0] = x[0] * 2.0
    return np.sum(x * x)


def fails(*args: Any, **kwargs: Any) -> Any:
    raise KeyError("of tapegen itself")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    "where",
    [[(generated_text, "emit")], [(module, "clean_up") for module in (compile, assembly, tangents)]],
    ids=["emit", "clean_up"],
)
def test_internal_errors_surface_as_what_they_are(call: Any, where: list, monkeypatch: pytest.MonkeyPatch) -> None:
    f = tg.differentiable(backend="python" if call is not CALLS["value"] else "auto")(scaled)
    for module, name in where:
        monkeypatch.setattr(module, name, fails)
    x = np.ones(3)
    with pytest.raises(KeyError, match="of tapegen itself"):
        call(f, x)
    assert x[0] == 1.0


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_internal_errors_of_compiled_text(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "lower_to_loops", fails)
    with pytest.raises(KeyError, match="of tapegen itself"):
        call(tg.differentiable(scaled), np.ones(3))


def test_refusals_while_building_are_their_own_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: Any, **kwargs: Any) -> Any:
        raise errors.AliasError("two names", "Copy one.")

    monkeypatch.setattr(pipeline, "lower_to_loops", refuses)
    with pytest.raises(errors.AliasError, match="two names"):
        tg.differentiable(scaled).value_and_grad(np.ones(3))


def test_errors_of_numba_itself_are_build_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GeneratedCodeCompiler, "define_pipelines", fails)
    x = np.ones(3)
    with pytest.raises(errors.BuildError, match=r"numba failed on the code of scaled_value_and_grad \(KeyError"):
        tg.differentiable(scaled).value_and_grad(x)
    assert x[0] == 1.0
