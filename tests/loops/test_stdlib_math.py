"""Functions of `math` and `cmath`: what is written out for compiled code computes the very same numbers."""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.ir.nodes import Call
from tapegen.rules import all_rules
from tapegen.rules.templates import chooser_of
from tests.judged import both

GRID = [0.0, -0.0, 0.3, -0.45, 1.5, -2.5, 3.0, 1e-310, 5e-324, 1.7e308, math.inf, -math.inf, math.nan]
HARD_SUMS = [
    [],
    [1e100, 1.0, -1e100],
    [1.0, 1e-16, 1e-16],
    [1.0, 2.0**-53, 2.0**-106],
    [1.0, 2.0**-53, -(2.0**-106)],
    [0.1] * 10,
    [1e308, 1e308, -1e308],
    [math.inf, 1.0],
    [math.inf, -math.inf],
    [math.nan, 2.0],
    *np.random.default_rng(0).normal(size=(20, 30)).cumprod(axis=1).tolist(),
]


def outcome(func: Any, *args: Any) -> Any:
    """The value of a call, or the exception and its text."""
    try:
        return func(*args)
    except Exception as error:
        return type(error), str(error)


def template_of(func: Any) -> Callable[..., Any]:
    choose = chooser_of(func)
    assert choose is not None
    text = choose(Call(func, ()))
    assert text is not None
    return text


@pytest.mark.parametrize("func", [math.remainder, math.modf, math.ulp, cmath.polar, math.isclose])
def test_texts_are_exact(func: Any) -> None:
    text = template_of(func)
    arity = 2 if func in (math.remainder, math.isclose) else 1
    for point in itertools.product(GRID, repeat=arity):
        got, expected = outcome(text, *point), outcome(func, *point)
        if expected == (ValueError, "math domain error"):
            assert got[0] is ValueError, point
        else:
            assert repr(np.array(got)) == repr(np.array(expected)), point


def test_sum_without_error() -> None:
    text = template_of(math.fsum)
    for numbers in HARD_SUMS:
        with np.errstate(all="ignore"):
            got, expected = outcome(text, numbers), outcome(math.fsum, numbers)
        assert repr(np.array(got)) == repr(np.array(expected)), numbers


def rarely_used(x: float, y: float) -> float:
    parts = (math.remainder(x, y), math.ulp(x), cmath.phase(-x), cmath.polar(x)[0], math.modf(y)[0], math.frexp(x)[0])
    total = math.fsum(parts) + math.dist((x, 1.0), (y, 2.0)) + math.nextafter(y, 0.0)
    if math.isclose(x, y) or cmath.isclose(x, 2.0) or (x > 5.0 and not cmath.isfinite(x)):
        total = total * 2.0
    return total


@both
def test_all_of_them_in_one_function(backend: str) -> None:
    derived = tg.differentiable(rarely_used, wrt=(0, 1), backend=backend)
    for point in ((1.7, 0.4), (2.0, 0.75), (0.4, 0.4 + 1e-12)):
        assert derived(*point) == pytest.approx(rarely_used(*point), rel=1e-15)
    tg.check_grads(rarely_used, 1.7, 0.4, modes=("forward", "reverse"), backend=backend)


LISTED = """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs floor
frexp gamma gcd hypot isfinite isinf isnan ldexp lgamma log log10 log1p log2 nextafter pow radians sin sinh sqrt tan
tanh trunc cbrt comb dist factorial fmod fsum isclose isqrt lcm modf perm remainder ulp"""


def test_every_function_of_math_has_a_rule() -> None:
    known = {rule.func for rule in all_rules()}
    by_hand = {"prod"}  # written out by the frontend
    missing = [name for name in LISTED.split() if getattr(math, name) not in known]
    assert not missing
    public = {name for name in dir(math) if callable(getattr(math, name)) and not name.startswith("_")}
    newer = {"sumprod", "fma"}  # of later Pythons
    assert public - set(LISTED.split()) - by_hand <= newer


def test_every_function_of_cmath_has_a_rule() -> None:
    known = {rule.func for rule in all_rules()}
    assert known >= {func for name, func in vars(cmath).items() if callable(func) and name[0] != "_"}
