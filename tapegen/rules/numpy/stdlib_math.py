"""Functions of `math` and `cmath` without a ufunc: their derivatives, and their templates for compiled code."""

from __future__ import annotations

import cmath
import math

import numpy as np

from tapegen.rules.registry import expands, fixed, inactive, linear, partials, pullback
from tapegen.rules.templates import template

inactive(math.ulp, math.isclose, cmath.isclose)
inactive(cmath.isfinite, cmath.isinf, cmath.isnan, of_complex=True)


@partials(math.nextafter, domain=[(0.3, 2.0), (3.0, 4.0)])
def nextafter(x, y):
    """The smallest step is none to a derivative."""
    return 1, None


@template(math.ulp)
def ulp(x):
    if math.isnan(x):
        return x
    x = abs(x)
    if math.isinf(x):
        return x
    after = math.nextafter(x, math.inf)
    if math.isinf(after):
        return x - math.nextafter(x, -math.inf)
    return after - x


@template(math.isclose)
def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    apart = abs(b - a)
    return apart <= abs(rel_tol * b) or apart <= abs(rel_tol * a) or apart <= abs_tol


@template(cmath.isclose)
def isclose_of_reals(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)


@template(np.isclose)
def isclose_of_arrays(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    b = b + 0.0  # no integer, of which a difference may wrap
    near = np.isfinite(b) & (np.abs(a - b) <= atol + rtol * np.abs(b)) | (a == b)
    if equal_nan:
        return near | np.isnan(a) & np.isnan(b)
    return near


@template(np.allclose)
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(np.all(isclose_of_arrays(a, b, rtol, atol, equal_nan)))


@template(math.remainder)
def remainder(x, y):
    if math.isnan(x) or math.isnan(y):
        return x + y
    if math.isinf(x) or y == 0.0:
        raise ValueError("math domain error")
    if math.isinf(y):
        return x
    size = abs(x)
    step = abs(y)
    below = math.fmod(size, step)
    above = step - below
    if below < above:
        rest = below
    elif below > above:
        rest = -above
    else:  # half way: to the even multiple
        rest = below - 2.0 * math.fmod(0.5 * (size - below), step)
    return math.copysign(1.0, x) * rest


@template(math.modf)
def modf(x):
    if math.isinf(x):
        return math.copysign(0.0, x), x
    whole = np.trunc(x)
    return math.copysign(x - whole, x), whole


@pullback(math.frexp, shapes=[fixed(1.3)])
def frexp(x, *, out, out_bar):
    return math.ldexp(out_bar[0], -out[1])


@frexp.pushforward
def frexp_pushforward(x, *, out, x_dot):
    return math.ldexp(x_dot, -out[1]), None


@linear(math.fsum, in_="seq", shapes=[(5,)])
def fsum(seq, *, out_bar):
    if not isinstance(seq, tuple | list):
        return np.full_like(seq, out_bar)
    bars = ()
    for _ in seq:
        bars = bars + (out_bar,)
    return bars


@template(math.fsum)
def fsum_text(seq):
    """Sums without error in a few numbers that do not overlap, then rounds once (Shewchuk)."""
    parts = np.zeros(64)  # no float64 needs more than 40
    count = 0
    special = 0.0
    infinite = 0.0
    for item in seq:
        x = float(item)
        given = x
        kept = 0
        for k in range(count):
            y = parts[k]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                parts[kept] = low
                kept = kept + 1
            x = high
        count = kept
        if math.isinf(x) or math.isnan(x):
            if math.isfinite(given):
                raise OverflowError("intermediate overflow in fsum")
            if math.isinf(given):
                infinite = infinite + given
            special = special + given
            count = 0
        elif x != 0.0:
            parts[count] = x
            count = count + 1
    if special != 0.0:
        if math.isnan(infinite):
            raise ValueError("-inf + inf in fsum")
        return special
    high = 0.0
    if count > 0:
        count = count - 1
        high = parts[count]
        low = 0.0
        while count > 0 and low == 0.0:
            x = high
            count = count - 1
            y = parts[count]
            high = x + y
            low = y - (high - x)
        # a tie between two floats: the remaining parts decide
        if count > 0 and ((low < 0.0 and parts[count - 1] < 0.0) or (low > 0.0 and parts[count - 1] > 0.0)):
            y = low * 2.0
            x = high + y
            if y == x - high:
                high = x
    return high


@expands(math.dist, shapes=[(3,), (3,)])
def dist(p, q):
    return np.linalg.norm(np.asarray(q) - np.asarray(p))


# ---- real arguments of cmath ---------------------------------------------------------------------------------------


@template(cmath.polar)
def polar_text(z):
    return abs(z), cmath.phase(z)
