"""The generated text that is kept in `tests/golden`: the very text, and what it computes when it is run from there.

After a change that is meant to change it: `python -m tests.goldens`, then read the differences as a user would.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.goldens import FOLDER, Derived, Golden, goldens
from tests.test_programs import assert_gradient, assert_same

GOLDENS = list(goldens())
ROOT = pathlib.Path(__file__).parents[2]


def each(form: str = "") -> Any:
    chosen = [golden for golden in GOLDENS if not form or form in golden.forms]
    return pytest.mark.parametrize("golden", [pytest.param(golden, id=golden.name) for golden in chosen])


def entry(path: pathlib.Path) -> Callable[..., Any]:
    """The last function of a file, imported from where it lies."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [made for made in vars(module).values() if getattr(made, "__module__", "") == path.stem][-1]


def run_joint(derived: Derived, function: Callable[..., Any]) -> tuple[Any, Any, list[Any]]:
    """Value, gradient, and the arguments afterwards."""
    leaves = derived.leaves()
    returned = function(*leaves, *derived.seeds(derived.program.plain[0]))
    values = returned if isinstance(returned, tuple) else (returned,)
    count = derived.results()
    return derived.value_of(values[:count]), derived.gradient_of(values[count:]), leaves


@each()
def test_the_text_is_the_one_that_is_kept(golden: Golden) -> None:
    for form, text in golden.texts().items():
        assert golden.path(form).read_text(encoding="utf-8") == text


def test_nothing_else_is_kept() -> None:
    assert {path for golden in GOLDENS for path in map(golden.path, golden.forms)} == set(FOLDER.glob("*.py"))
    assert len(GOLDENS) >= 40


@each("joint")
def test_the_kept_text_computes_value_and_gradient(golden: Golden) -> None:
    derived = golden.derived()
    value, gradient, leaves = run_joint(derived, entry(golden.path("joint")))
    assert_same(value, golden.program.plain[0], "value")
    assert_gradient(golden.program, gradient)
    assert_same(leaves, derived.leaves(golden.program.plain[1]), "arguments afterwards")


@each("joint")
def test_recording_everything_changes_no_result(golden: Golden) -> None:
    derived = golden.derived(record_everything=True)
    value, gradient, _ = run_joint(derived, derived.built())
    expected = run_joint(golden.derived(), entry(golden.path("joint")))
    assert_same(value, expected[0], "value")
    assert_same(gradient, expected[1], "gradient", rtol=1e-14)


@each("forward")
def test_the_kept_pair_computes_value_and_gradient(golden: Golden) -> None:
    derived = golden.derived()
    kept = entry(golden.path("forward"))(*derived.leaves())
    kept = kept if isinstance(kept, tuple) else (kept,)
    count = derived.results()
    assert_same(derived.value_of(kept[:count]), golden.program.plain[0], "value")
    bars = entry(golden.path("backward"))(*kept[count:], *derived.seeds(golden.program.plain[0]))
    assert_gradient(golden.program, derived.gradient_of(bars if isinstance(bars, tuple) else (bars,)))


@each("compiled")
def test_the_kept_compiled_text_computes_value_and_gradient(golden: Golden) -> None:
    derived = golden.derived()
    function = entry(golden.path("compiled"))
    value, gradient, _ = run_joint(derived, getattr(function, "py_func", function))
    assert_same(value, golden.program.plain[0], "value", rtol=1e-14)
    assert_gradient(golden.program, gradient)


def test_the_text_does_not_depend_on_the_hash_seed() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-m", "tests.goldens", "--digest"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
