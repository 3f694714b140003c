"""Every rule inside a program: both modes, second order, and the text that numba gets.

That text is run by Python here, which takes no time to compile; `-m compiled` compiles one program for every rule, and
`-m whole` takes every call of `rule_cases`.  What has both marks compiles every call: about 1200 texts, for few calls
differ in sizes alone.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.backend.numba.build import build_numba, build_python, decorator_text
from tapegen.backend.printer.module import emit
from tapegen.cli.rules import UNCOMPILED as NEVER_COMPILED
from tapegen.errors import NoCompiledForm
from tapegen.ir.nodes import Function
from tapegen.loops.pipeline import lower_to_loops
from tapegen.rules import Rule, all_rules
from tapegen.testing import Case, default_cases
from tests.rule_cases import VARIANTS
from tests.rule_programs import program_of
from tests.scipy_cases import ONE_SECTION, SCIPY_VARIANTS, SOLVERS

pytestmark = [
    pytest.mark.filterwarnings("ignore:.row_stack. alias:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:logm result may be inaccurate"),
]
CASES = {**VARIANTS, **SCIPY_VARIANTS}


def owner_of(rule: Rule) -> str:
    return getattr(rule.func, "__module__", None) or ("numpy" if hasattr(np, rule.func.__name__) else "scipy.special")


def rules_of(*owners: str) -> list[Rule]:
    """The rules of packages; of several names for the same body one."""
    found: dict[Any, Rule] = {}
    for rule in all_rules():
        if rule.kind != "inactive" and owner_of(rule).startswith(owners) and rule.func not in SOLVERS:
            found.setdefault(rule.body, rule)
    return list(found.values())


NUMPY = rules_of("numpy")
# those of scipy.special and scipy.stats are in tests/rules/test_special_functions.py and tests/rules/test_scipy.py
SCIPY = rules_of("scipy.linalg", "scipy.signal", "scipy.fft", "scipy.integrate", "scipy.ndimage")


def named(rule: Rule) -> str:
    return f"{owner_of(rule)}.{rule.func.__name__}"


each = pytest.mark.parametrize("rule", NUMPY + SCIPY, ids=named)


def _named(name: str) -> Callable:
    """A function by the name in the table."""
    module, _, function = name.replace("np.", "numpy.").rpartition(".")
    return getattr(importlib.import_module(module), function)


# Where a small change of the arguments changes the shape, or the differences hold no digits.
NOT_SMOOTH = {np.trim_zeros, np.float32, *ONE_SECTION}
# The number of their results is that of different elements: no difference is taken across equal ones.
COUNTING = {np.unique, np.unique_values, np.unique_counts, np.unique_inverse, np.unique_all, np.union1d}
COUNTING |= {np.intersect1d, np.setdiff1d, np.setxor1d}
# What numba gets no text for, with what the refusal says.
UNCOMPILED: dict[Callable, str] = {
    **{_named(name): r"(scipy|np)\.[a-z]*\.[a-z_]* has no compiled form" for name in NEVER_COMPILED},
}


def first_case(rule: Rule) -> list[Case]:
    return all_cases(rule)[:1]


def all_cases(rule: Rule) -> list[Case]:
    declared = rule.domain is not None or rule.shapes is not None
    return [*(default_cases(rule)[:2] if declared else ()), *CASES.get(rule.func, [])]


def programs(rule: Rule, cases: list[Case]) -> Iterator[tuple[Callable, tuple]]:
    for args, kwargs in cases:
        function, values = program_of(rule, args, kwargs)
        if values:
            yield function, values


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple | list) else [value]


def check_orders(rule: Rule, cases: list[Case], order: int) -> None:
    for function, values in programs(rule, cases):
        if rule.func not in NOT_SMOOTH and not (rule.func in COUNTING and _has_equal(values)):
            check_grads(function, *values, modes=("forward", "reverse"), order=order, backend="python")


def _has_equal(values: tuple) -> bool:
    elements = np.concatenate([np.ravel(value) for value in values])
    return len(np.unique(elements)) < len(elements)


def check_text(rule: Rule, cases: list[Case], build: Callable[[Function], Callable]) -> None:
    for function, values in programs(rule, cases):
        check_text_of(function, values, build)


def check_text_of(function: Callable, values: tuple, build: Callable[[Function], Callable]) -> None:
    """The text for numba gives what the readable text gives: the value, and its cotangents."""
    call = differentiable(function, backend="python", wrt=tuple(range(len(values))))._specialise(values, {})
    primal, joint = call.program.primal, call.program.stages(scalar=False).joint
    with np.errstate(all="ignore"):
        results = leaves(build_python(emit(primal))(*copies(call.leaves())))
        rng = np.random.default_rng(0)
        floats = [result for result in results if np.asarray(result).dtype.kind in "fc"]
        seeds = [seed_of(x, rng) for x in floats]
        want = leaves(build_python(emit(joint))(*copies(call.leaves()), *seeds))
        got = leaves(build(joint)(*copies(call.leaves()), *seeds))
        assert len(got) == len(want)
        for mine, expected in zip(got, want, strict=True):
            assert np.shape(mine) == np.shape(expected)
            if expected is not None:
                np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)


def seed_of(value: Any, rng: np.random.Generator) -> Any:
    """A cotangent, of an array without axes such an array."""
    drawn = rng.uniform(0.5, 1.5, np.shape(value)).astype(np.asarray(value).dtype)
    return drawn if isinstance(value, np.ndarray) else drawn[()]


def copies(values: list[Any]) -> list[Any]:
    return [np.copy(value) if isinstance(value, np.ndarray) else value for value in values]


def loops(function: Function) -> Callable:
    return build_python(emit(lower_to_loops(function)))


def compiled(function: Function) -> Callable:
    return build_numba(emit(lower_to_loops(function), decorator=decorator_text()))


@pytest.mark.parametrize("rule", NUMPY, ids=named)
def test_both_modes_to_second_order(rule: Rule) -> None:
    check_orders(rule, first_case(rule), 2)


@pytest.mark.parametrize("rule", SCIPY, ids=named)
def test_both_modes(rule: Rule) -> None:
    check_orders(rule, first_case(rule), 1)


@each
def test_text_for_numba(rule: Rule) -> None:
    if rule.func in UNCOMPILED:
        with pytest.raises(NoCompiledForm, match=UNCOMPILED[rule.func]):
            check_text(rule, first_case(rule), loops)
    else:
        check_text(rule, first_case(rule), loops)


@pytest.mark.whole
@each
def test_every_call(rule: Rule) -> None:
    check_orders(rule, first_case(rule), 2)
    check_orders(rule, all_cases(rule), 1)
    if rule.func not in UNCOMPILED:
        check_text(rule, all_cases(rule), loops)


@pytest.mark.compiled
@each
def test_compiled(rule: Rule) -> None:
    if rule.func not in UNCOMPILED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_text(rule, first_case(rule), compiled)


@pytest.mark.compiled
@pytest.mark.whole
@each
def test_every_call_compiled(rule: Rule) -> None:
    # of the upper triangle the vectors of numba may have other signs: such a program runs as Python
    cases = [case for case in all_cases(rule) if rule.func is not np.linalg.eigh or case[0][1:] != ("U",)]
    if rule.func not in UNCOMPILED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_text(rule, cases, compiled)
