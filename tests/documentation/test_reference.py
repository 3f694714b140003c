"""The reference names what is public, and the examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen
from tapegen.rules import registry
from tests.documentation.pages import is_of_the_package

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
NOTHING = {"check_grads", "check_rule", "set_seed", "inactive", "debug", "debug_nans"}
"""Functions that return nothing."""

MODULES = ("tapegen", "tapegen.nn", "tapegen.aot", "tapegen.distributed")


def public(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


NAMES = [
    f"{module}.{name}"
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if not inspect.ismodule(getattr(importlib.import_module(module), name))
]


def test_every_public_name_is_there_once() -> None:
    shown = re.findall(r"^::: ([\w.]+)$", PAGE, re.MULTILINE)
    # where a module has the name of its function, the page names the function in the module
    assert sorted(path.rpartition(".")[2] for path in shown) == sorted(path.rpartition(".")[2] for path in NAMES)
    for path in shown:
        assert public(path) in [public(name) for name in NAMES]


@pytest.mark.parametrize("path", NAMES)
def test_docstring(path: str) -> None:
    found = public(path)
    text = inspect.getdoc(found)
    assert text
    if inspect.isfunction(found):
        parameters = [name for name in inspect.signature(found).parameters if name != "_"]  # what is refused
        if parameters:
            assert "Parameters\n----------" in text
            documented = text.partition("Parameters\n----------")[2].partition("\n\n")[0]
            for parameter in parameters:
                assert re.search(rf"(^|, |\*){parameter}( :|,|$)", documented, re.MULTILINE), parameter
        assert "Returns\n-------" in text or not parameters or path.rpartition(".")[2] in NOTHING


@pytest.fixture
def own_rules_end() -> Iterator[None]:
    yield
    for func in [func for func, rule in registry._RULES.items() if not is_of_the_package(rule)]:
        del registry._RULES[func]


@pytest.mark.parametrize("path", NAMES)
def test_examples_in_docstrings(path: str, own_rules_end: None) -> None:
    found = public(path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    parts = [found, *vars(found).values()] if inspect.isclass(found) else [found]
    for part in parts:
        if getattr(part, "__doc__", None):
            for example in doctest.DocTestFinder(recurse=False).find(
                part, path, globs={"tg": tapegen, "np": np, "__name__": __name__}
            ):
                runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
