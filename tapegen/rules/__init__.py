"""Derivative rules.  Importing this package registers them all."""

from __future__ import annotations

from importlib import import_module

from tapegen.rules.registry import Rule, all_rules, expands, inactive, linear, partials, pullback, rule_of

for _area in ("elementwise", "constants", "reductions", "shapes", "products"):
    import_module(f"tapegen.rules.{_area}")

__all__ = ["Rule", "all_rules", "expands", "inactive", "linear", "partials", "pullback", "rule_of"]
