"""Every rule that says that it holds for complex numbers, with arguments that have imaginary parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.rules import Rule
from tests.rule_programs import program_of
from tests.rules.test_rule_programs import NOT_SMOOTH, NUMPY, UNCOMPILED, copies, first_case, leaves, loops, named

pytestmark = pytest.mark.filterwarnings("ignore:.row_stack. alias:DeprecationWarning")

OF_REAL_SIGNALS = {np.fft.rfft, np.fft.rfftn, np.fft.rfft2, np.fft.ihfft}
TO_REAL = {np.astype, np.full_like}  # as their calls here say, with NumPy's warning


def programs(rule: Rule) -> Iterator[tuple[Callable[..., Any], tuple]]:
    rng = np.random.default_rng(0)
    for args, kwargs in first_case(rule):
        function, values = program_of(rule, args, kwargs)
        if values:
            yield function, tuple([(value + 1j * rng.uniform(-0.6, 0.6, np.shape(value)))[()] for value in values])


# of factors that are determined up to phases, differences are those of the phases that LAPACK chose: see
# tests/rules/test_complex_matrices.py
RULES = [rule for rule in NUMPY if rule.of_complex and not rule.phases]
RULES = [rule for rule in RULES if rule.func not in {*OF_REAL_SIGNALS, *TO_REAL, *NOT_SMOOTH}]
RULES = [rule for rule in RULES if any(True for _ in programs(rule))]


def check(rule: Rule) -> None:
    """Both modes of the generated Python; the text that numba gets, run by Python, gives the same cotangents."""
    for function, values in programs(rule):
        check_grads(function, *values, modes=("forward", "reverse"), backend="python")
        if rule.func in UNCOMPILED:
            continue
        call = differentiable(function, backend="python", wrt=tuple(range(len(values))))._specialise(values, {})
        joint = call.program.stages(scalar=False).joint
        seeds = [np.ones_like(result) for result in leaves(function(*copies(list(values))))]
        want = leaves(build_python(emit(joint))(*copies(call.leaves()), *seeds))
        got = leaves(loops(joint)(*copies(call.leaves()), *seeds))
        for mine, expected in zip(got, want, strict=True):
            if expected is not None:
                np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)


def test_most_rules_of_numpy_hold_for_complex_numbers() -> None:
    assert len(RULES) > 120


@pytest.mark.parametrize("rule", RULES[::4], ids=named)
def test_sample_of_rules(rule: Rule) -> None:
    check(rule)


@pytest.mark.whole
@pytest.mark.parametrize("rule", RULES, ids=named)
def test_rules(rule: Rule) -> None:
    check(rule)
