"""The reference names what is public, and the examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tapegen
from tapegen.rules import registry

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
NOTHING = {"check_grads", "check_rule", "set_seed", "inactive", "debug", "debug_nans"}
"""Functions that return nothing."""

MODULES = ("tapegen", "tapegen.nn", "tapegen.aot")
NAMES = [
    f"{module}.{name}"
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if not inspect.ismodule(getattr(importlib.import_module(module), name))
]


def test_every_public_name_is_there_once() -> None:
    assert sorted(re.findall(r"^::: ([\w.]+)$", PAGE, re.MULTILINE)) == sorted(NAMES)


@pytest.mark.parametrize("path", NAMES)
def test_docstring(path: str) -> None:
    module, _, name = path.rpartition(".")
    public = getattr(importlib.import_module(module), name)
    text = inspect.getdoc(public)
    assert text
    if inspect.isfunction(public):
        parameters = list(inspect.signature(public).parameters)
        if parameters:
            assert "Parameters\n----------" in text
            documented = text.partition("Parameters\n----------")[2].partition("\n\n")[0]
            for parameter in parameters:
                assert re.search(rf"(^|, |\*){parameter}( :|,|$)", documented, re.MULTILINE), parameter
        assert "Returns\n-------" in text or not parameters or name in NOTHING


@pytest.fixture
def own_rules_end() -> Iterator[None]:
    yield
    for func in [func for func in registry._RULES if getattr(func, "__module__", "") == __name__]:
        del registry._RULES[func]


@pytest.mark.parametrize("path", NAMES)
def test_examples_in_docstrings(path: str, own_rules_end: None) -> None:
    module, _, name = path.rpartition(".")
    public = getattr(importlib.import_module(module), name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    parts = [public, *vars(public).values()] if inspect.isclass(public) else [public]
    for part in parts:
        if getattr(part, "__doc__", None):
            for example in doctest.DocTestFinder(recurse=False).find(
                part, path, globs={"tg": tapegen, "np": np, "__name__": __name__}
            ):
                runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
