"""Derivative rules.  Importing this package registers them; those of scipy follow when scipy is imported."""

from __future__ import annotations

from importlib import import_module

from tapegen.rules.registry import (
    Rule,
    all_refusals,
    all_rules,
    expands,
    fixed,
    inactive,
    linear,
    partials,
    pullback,
    refusal_of,
    refused,
    rule_of,
)

for _area in (
    "elementwise",
    "constants",
    "reductions",
    "scans",
    "order_statistics",
    "nan_reductions",
    "shapes",
    "joining",
    "creation",
    "windows",
    "indexing",
    "gathers",
    "stores",
    "applied_functions",
    "sets",
    "statistics",
    "products",
    "polynomials",
    "linalg",
    "factorisations",
    "fourier",
    "complex_numbers",
    "special",
    "mathematics",
    "surgery",
):
    import_module(f"{__name__}.{_area}")

__all__ = [
    "Rule",
    "all_refusals",
    "all_rules",
    "expands",
    "fixed",
    "inactive",
    "linear",
    "partials",
    "pullback",
    "refusal_of",
    "refused",
    "rule_of",
]
