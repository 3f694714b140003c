"""Every listed name of scipy has a rule, is declared to have no derivative, or is refused with a reason of its own."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Callable
from typing import Any

from tapegen.rules import refusal_of, rule_of

LIST = pathlib.Path(__file__).parents[1].joinpath("scipy_names.txt")
DISCRETE = frozenset("bernoulli betabinom binom geom multinomial nbinom poisson".split())


def functions() -> dict[str, Callable]:
    """The listed functions, by the name that users write; of a family its log density."""
    found: dict[str, Any] = {}
    module = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            module = f"scipy.{line.strip('[]')}"
        elif line and not line.startswith("#"):
            for name in line.split():
                func = getattr(importlib.import_module(module), name)
                if module == "scipy.stats":
                    func = func.logpmf if name in DISCRETE else func.logpdf
                found[f"{module}.{name}"] = func
    return found


def test_every_name_is_known() -> None:
    names = functions()
    assert len(names) == 206
    missing = [name for name, func in names.items() if rule_of(func) is None and refusal_of(func) is None]
    assert not missing
    for name, func in names.items():
        assert rule_of(func) is None or refusal_of(func) is None, f"{name} has a rule and is refused"
