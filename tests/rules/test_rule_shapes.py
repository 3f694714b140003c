"""Every rule with arrays of other shapes than its calls have: empty, of size 1, numbers, views (rule_variants).

What NumPy accepts is checked as any call is: the rule, its program in both modes, the text for numba.  What NumPy
refuses must be refused.  The ordinary run takes one variant of every fourth rule, `-m whole` all of them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import fft, integrate, linalg, ndimage, signal

from tapegen import check_grads, differentiable
from tapegen.api import Differentiable
from tapegen.errors import NoCompiledForm, TapegenError
from tapegen.rules import Rule, rule_of
from tapegen.testing import Case, check_rule
from tests.rule_cases import call, values
from tests.rule_programs import WRITES, program_of
from tests.rule_variants import arrays, variants
from tests.rules.test_rule_programs import (
    COUNTING,
    NOT_SMOOTH,
    NUMPY,
    SCIPY,
    UNCOMPILED,
    all_cases,
    check_text,
    leaves,
    loops,
    named,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy warns of means of nothing, and so do programs

OUTSIDE = r"out of bounds|zero-size array|empty"
REFUSED: dict[Callable, str] = {
    **dict.fromkeys(
        (np.quantile, np.percentile, np.nanquantile, np.nanpercentile),
        f"{OUTSIDE}|more than one axis|must be in the range",
    ),
    **dict.fromkeys((np.take, np.compress, np.resize, np.delete), OUTSIDE),
    **dict.fromkeys((np.histogram, np.histogram2d, np.histogram_bin_edges), OUTSIDE),
    **dict.fromkeys((np.extract, np.fill_diagonal, np.put, np.putmask, np.place), f"{OUTSIDE}|array with an axis"),
    np.put_along_axis: "broadcast together|more dimensions",
    **dict.fromkeys((np.linalg.norm, np.linalg.matrix_norm), OUTSIDE),
    **dict.fromkeys((np.linalg.eigh, np.linalg.eigvalsh, np.linalg.eig, np.linalg.eigvals), "reshape|empty"),
    np.linalg.qr: "must be square",
    np.choose: "of the rank of each choice|broadcast together",
    np.take_along_axis: "broadcast together",
    np.insert: "shape mismatch|zip",
    np.gradient: "of a number",
    np.trim_zeros: "for vectors only",
    np.apply_along_axis: "cannot reshape array of size 0",
    np.histogramdd: f"{OUTSIDE}|samples are the rows of a matrix",
    np.einsum: "cannot reshape array|not aligned",  # see tests/rules/test_rule_broadcasting.py
    np.polymul: "cannot be empty",
    np.polydiv: "for vectors only|cannot be applied",
    signal.lfilter: "non-broadcastable",  # one state for several signals
    signal.istft: "Invalid number of FFT data points",  # scipy takes 0 for all there are
    linalg.fiedler_companion: "too many indices|stack of matrices|is out of bounds",  # of one it is a vector
}
"""What is refused, though NumPy accepts it, with what the refusal says: nothing of it is computed wrongly."""

REFUSED_IN = {
    "scipy.linalg": "stack of matrices|a 2-D array|is out of bounds|same number of dimensions|must be square",
    "scipy.ndimage": "empty axes|no derivative with respect to 'constant_values'|is out of bounds|weights.ndim",
    "scipy.integrate": "'initial=' of",
}
"""The same of all functions of a package."""

CRASHES = {signal.convolve2d, signal.correlate2d, signal.lfilter, linalg.solve_sylvester}
"""Where one of the arrays has no elements, scipy divides integers by zero, which ends the process, or reads memory that
is none of theirs: its result differs from call to call."""

LENIENT = {np.place, np.putmask, np.piecewise, np.apply_along_axis, signal.sosfilt}
"""Masks without elements mark none here, where NumPy wants the size of the array; those of one element mark all; of no
vectors a function has no results; sections of a filter may lie apart from each other."""

FORGETS = {np.nanquantile, np.nanpercentile, linalg.fiedler, np.cov, np.corrcoef, np.bincount, np.histogram, np.polyval}
FORGETS |= {np.poly, signal.convolve, signal.fftconvolve, signal.oaconvolve, signal.correlate}
FORGETS |= {signal.stft, signal.welch, signal.csd, linalg.qr_multiply}
"""Where an array has no elements, an axis is left away, another variable too, weights are taken for integers, or zeros
of odd shapes come out."""


def plain(rule: Rule, case: Case) -> Any:
    """What the function itself gives."""
    args, kwargs = copy.deepcopy(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DeprecationWarning)
        with np.errstate(all="ignore"):
            out = rule.func(*args, **kwargs)
    return args[0] if rule.func in WRITES else out


def is_finite(value: Any) -> bool:
    return all(np.all(np.isfinite(leaf)) for leaf in leaves(value) if np.asarray(leaf).dtype.kind in "fc")


def is_rounding(value: Any) -> bool:
    """Whether a result is zero but for its last digit (a line through two points, taken away): differences are too."""
    largest = max((float(np.max(np.abs(leaf), initial=0.0)) for leaf in leaves(value)), default=0.0)
    return 0.0 < largest < 1e-14


@functools.cache
def derived(function: Callable, count: int) -> Differentiable:
    return differentiable(function, backend="python", wrt=tuple(range(count)))


@contextlib.contextmanager
def known_refusals(rule: Rule) -> Iterator[None]:
    try:
        yield
    except (TapegenError, IndexError, ValueError) as error:  # rules that run by themselves name no place
        packages = (reason for package, reason in REFUSED_IN.items() if named(rule).startswith(package))
        known = REFUSED.get(rule.func) or next(packages, None)
        if known is None or not re.search(known, str(error)):
            raise


def check_variant(rule: Rule, case: Case) -> None:
    function, values = program_of(rule, *case)
    if not values or (rule.func in CRASHES | FORGETS and any(array.size == 0 for array in arrays(case))):
        return
    program = derived(function, len(values))
    try:
        expected = plain(rule, case)
    except DeprecationWarning:
        return
    except Exception as error:
        if rule.func in LENIENT:
            return
        with pytest.raises((type(error), TapegenError)):
            program.vjp(*copy.deepcopy(values))
        return
    with known_refusals(rule):
        check_accepted(rule, case, expected, program, values)


def check_accepted(rule: Rule, case: Case, expected: Any, program: Differentiable, values: tuple) -> None:
    value, pullback = program.vjp(*copy.deepcopy(values))
    for got, want in zip(leaves(value), leaves(expected), strict=True):
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    for bar, argument in zip(pullback(value), values, strict=True):
        assert np.shape(bar) == np.shape(argument)
    if not is_finite(expected) or is_rounding(expected):
        return
    if rule.func in WRITES and np.ndim(case[0][0]) == 0:  # differences need numbers, which cannot be written
        return
    if rule.func not in NOT_SMOOTH | COUNTING:
        check_rule(rule.func, cases=[case])
        check_grads(program, *values, wrt=tuple(range(len(values))), modes=("forward", "reverse"))
    if rule.func not in UNCOMPILED:
        unlike_numba = ZeroDivisionError if any(array.size == 0 for array in arrays(case)) else NoCompiledForm
        with contextlib.suppress(NoCompiledForm, unlike_numba):  # of these ranks it runs as Python
            check_text(rule, [case], loops)


def shown(value: Any) -> str:
    """An argument as far as its type and shape go."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.strides}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def all_variants(rule: Rule) -> dict[str, Case]:
    """The variants of all calls of a rule, each once."""
    found: dict[str, Case] = {}
    for case in all_cases(rule):
        for _, (args, kwargs) in variants(case):
            text = f"{shown(args)} {shown(list(kwargs.items()))}"
            found.setdefault(text, (args, kwargs))
    return found


RULES = [rule for rule in NUMPY + SCIPY if all_variants(rule)]


def test_every_rule_of_arrays_has_variants() -> None:
    assert len(RULES) > 300


@pytest.mark.parametrize("rule", RULES[::4], ids=named)
def test_one_variant(rule: Rule) -> None:
    found = list(all_variants(rule).values())
    check_variant(rule, found[zlib.crc32(named(rule).encode()) % len(found)])


FOUND: list[tuple[Callable, Case]] = [
    (signal.convolve2d, call(values(4, 5), values(2, 1), mode="valid")),
    (signal.lfilter, call(np.array(0.7), np.array([1.2, -0.4, 0.3]), values(6))),
    (linalg.cholesky, call(np.array(4.0), True)),
    (linalg.cholesky, call(np.zeros((2, 0, 0)))),
    (linalg.expm, call(np.zeros((0, 0)))),
    (linalg.toeplitz, call(values(3), 1.5)),
    (linalg.cho_solve, call((np.eye(3), False), values(2, 3, 2))),
    (linalg.lu_solve, call((np.eye(3), np.arange(2)), values(3, 2))),
    (integrate.trapezoid, call(values(5), np.array(0.0))),
    (ndimage.laplace, call(np.array(0.7))),
    (ndimage.gaussian_laplace, call(0.7, 0.8)),
    (ndimage.gaussian_gradient_magnitude, call(values(3, 2), 0.8, axes=())),
    (fft.irfftn, call(values(3, 1))),
    (fft.irfft2, call(values(2, 3, 1))),
    (np.polyval, call(values(2, 3), 0.7)),
    (np.polyval, call(values(4, 3), values(3))),
    (np.median, call(np.zeros((0, 4)))),
    (np.median, call(np.zeros((2, 0, 4)), axis=1, keepdims=True)),
]
"""Calls that went wrong once, or were refused."""


@pytest.mark.parametrize(("func", "case"), FOUND, ids=[f"{func.__name__}{k}" for k, (func, _) in enumerate(FOUND)])
def test_calls_found_before(func: Callable, case: Case) -> None:
    rule = rule_of(func)
    assert rule is not None
    check_variant(rule, case)


@pytest.mark.whole
@pytest.mark.parametrize("rule", RULES, ids=named)
def test_all_variants(rule: Rule) -> None:
    for text, case in all_variants(rule).items():
        try:
            check_variant(rule, case)
        except Exception as error:
            error.add_note(f"{named(rule)} of {text}")
            raise
