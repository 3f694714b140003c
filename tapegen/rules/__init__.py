"""Derivative rules.  Importing this package registers them; those of scipy follow when scipy is imported."""

from __future__ import annotations

from importlib import import_module

from tapegen.rules.registry import Rule, all_rules, expands, fixed, inactive, linear, partials, pullback, rule_of

for _area in (
    "elementwise",
    "constants",
    "reductions",
    "shapes",
    "joining",
    "creation",
    "indexing",
    "products",
    "linalg",
    "special",
    "mathematics",
    "surgery",
):
    import_module(f"{__name__}.{_area}")

__all__ = ["Rule", "all_rules", "expands", "fixed", "inactive", "linear", "partials", "pullback", "rule_of"]
