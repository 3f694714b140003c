"""Derivative rules, one plain Python function each; those of SciPy are registered when SciPy is imported.

* `rule` - a rule as data, and what is checked of its body
* `registry` - decorators that register rules, and their lookup
* `templates` - what compiled code has in place of calls that it does not support
* `helpers` - what rule bodies may call besides NumPy
* `saved_values` - which operands a rule body reads, and the body cut down to the wanted derivatives
* `nondifferentiable` - functions whose results carry no derivative
* `functional` - functions that call the functions they are given
* `gradient_modifiers` - stop_gradient, clip_gradient and their like
* `random` - reparameterized sampling
* `implicit` - implicit differentiation, the common part of solver rules
* `external_functions` - library functions that programs call as they are
* `numpy` - element-wise functions, reductions, scans, statistics, polynomials
* `arrays` - creation, shapes, indexing, selection, sorting
* `linalg` - linear algebra of NumPy and SciPy
* `signal` - Fourier transforms, filters, windows
* `mpi` - communication between ranks
* `scipy` - special functions, statistics, interpolation, quadrature, differential equations, optimization

A rule file imports NumPy, SciPy, math, the registry and the rules' helpers, nothing else.
"""

from __future__ import annotations

from importlib import import_module

from tapegen.rules.registry import (
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
from tapegen.rules.rule import Rule

for _area in (
    "numpy.elementwise",
    "nondifferentiable",
    "numpy.reductions",
    "numpy.scans",
    "arrays.sorting",
    "numpy.nan_reductions",
    "arrays.shape_manipulation",
    "arrays.concatenation",
    "arrays.creation",
    "signal.windows",
    "arrays.indexing",
    "arrays.selection",
    "arrays.inplace",
    "functional",
    "arrays.sets",
    "numpy.statistics",
    "linalg.contractions",
    "numpy.polynomials",
    "linalg.solve",
    "linalg.factorizations",
    "signal.fft",
    "numpy.complex",
    "numpy.math_special",
    "numpy.stdlib_math",
    "gradient_modifiers",
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
