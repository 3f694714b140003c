"""Functions of `scipy.special`: gamma, beta, Bessel and hypergeometric functions."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tapegen.rules.external_functions import of_numbers
from tapegen.rules.helpers import in_precision_of, require
from tapegen.rules.registry import expands, fixed, inactive, partials, pullback

of_numbers(special.gamma, special.gammaln, special.loggamma, special.gammasgn, special.digamma, special.rgamma)
of_numbers(special.polygamma, special.zeta, special.beta, special.betaln, special.poch, special.binom)
of_numbers(special.betainc, special.gammainc, special.gammaincc)
of_numbers(special.j0, special.j1, special.y0, special.y1, special.jv, special.yv, special.yn)
of_numbers(special.i0, special.i1, special.i0e, special.i1e, special.iv, special.ive)
of_numbers(special.k0, special.k1, special.k0e, special.k1e, special.kv, special.kve)
of_numbers(special.hyp0f1, special.hyp1f1, special.hyp2f1)

inactive(special.gammasgn, special.bernoulli)


def positive(rng):
    """Arguments of functions with poles at 0, -1, ..."""
    return rng.uniform(0.4, 4.0, 5)


def fraction(rng):
    """Arguments between 0 and 1."""
    return rng.uniform(0.1, 0.7, 5)


# ---- gamma ---------------------------------------------------------------------------------------------------------


@partials(special.gamma, domain=[(0.3, 4.0)], nonfinite=True)
def gamma(x, *, out):
    return out * special.digamma(x)


@partials(special.gammaln, special.loggamma, domain=[(0.3, 4.0)], nonfinite=True)
def gammaln(x):
    return special.digamma(x)


def is_pole(x):
    """Whether gamma has a pole: 0, -1, ...  There its reciprocal is zero, and `gamma(1 - x) * sin(pi * x) / pi`."""
    return (x <= 0.0) & (x == np.floor(x))


def cosine_and_sine(x):
    """`cos(pi * x)` and `sin(pi * x) / pi`, exact at integers."""
    rest = math.pi * (x - np.floor(x))
    sign = np.cos(math.pi * np.floor(x))
    return sign * np.cos(rest), sign * np.sin(rest) / math.pi


@partials(special.rgamma, domain=[(0.3, 4.0)], nonfinite=True)
def rgamma(x, *, out):
    pole = is_pole(x)
    off = np.where(pole, 1.0, x)
    mirror = np.where(pole, 1.0 - x, 1.0)
    cosine, sine = cosine_and_sine(x)
    return np.where(
        pole, special.gamma(mirror) * (cosine - special.digamma(mirror) * sine), -out * special.digamma(off)
    )


@partials(special.digamma, domain=[(0.3, 4.0)], nonfinite=True)
def digamma(x):
    return special.zeta(2.0, x)


@partials(special.polygamma, wrt="x", domain=[(1.0, 1.0), (0.4, 4.0)], nonfinite=True)
def polygamma(n, x):
    return special.polygamma(n + 1, x)


@partials(special.zeta, wrt="q", domain=[(2.0, 2.0), (0.4, 4.0)], nonfinite=True)
def zeta(x, q):
    return -x * special.zeta(x + 1.0, q)


@expands(special.multigammaln, shapes=[fixed(2.7), fixed(3)])
def multigammaln(a, d):
    total = 0.25 * d * (d - 1) * math.log(math.pi) + special.gammaln(a)
    for j in range(1, d):
        total = total + special.gammaln(a - 0.5 * j)
    return total


@expands(special.factorial, shapes=[fixed(2.5)])
def factorial(n, exact=False):
    require(not exact, "factorial(exact=True) is for integers.", "Leave exact out.")
    return np.where(n >= 0, special.gamma(n + 1.0), 0.0)


# ---- beta and binomial ---------------------------------------------------------------------------------------------


@partials(special.beta, domain=[(0.3, 4.0), (0.3, 4.0)], nonfinite=True)
def beta(a, b, *, out):
    both = special.digamma(a + b)
    return out * (special.digamma(a) - both), out * (special.digamma(b) - both)


@partials(special.betaln, domain=[(0.3, 4.0), (0.3, 4.0)], nonfinite=True)
def betaln(a, b):
    both = special.digamma(a + b)
    return special.digamma(a) - both, special.digamma(b) - both


@partials(special.poch, domain=[(0.3, 4.0), (0.3, 2.0)], nonfinite=True)
def poch(z, m, *, out):
    """`gamma(z + m) / gamma(z)`; where both have a pole it is a polynomial of z, and jumps as a function of m."""
    start_pole, end_pole = is_pole(z), is_pole(z + m)
    start, end = special.digamma(z), special.digamma(z + m)
    mirror = np.where(start_pole, 1.0 - z, 1.0)
    mirror_end = np.where(start_pole & end_pole, 1.0 - z - m, 1.0)
    cosine, sine = cosine_and_sine(z)
    at_zero = special.gamma(z + m) * special.gamma(mirror) * (cosine + (end - special.digamma(mirror)) * sine)
    polynomial = out * (special.digamma(mirror_end) - special.digamma(mirror))
    at_pole = np.where(end_pole, polynomial, at_zero)
    jumps = start_pole & end_pole
    return np.where(start_pole, at_pole, out * (end - start)), np.where(jumps, math.nan, out * end)


@partials(special.binom, domain=[(3.0, 4.0), (0.3, 2.0)], nonfinite=True)
def binom(n, k, *, out):
    """`gamma(n + 1) / gamma(k + 1) / gamma(n - k + 1)`; it is zero where one of the divisors has a pole."""
    above, below = is_pole(n - k + 1.0), is_pole(k + 1.0)
    whole, rest, part = special.digamma(n + 1.0), special.digamma(n - k + 1.0), special.digamma(k + 1.0)
    mirror = np.where(above, k - n, np.where(below, -k, 1.0))
    factor, bend = special.beta(n + 1.0, mirror), special.digamma(mirror)
    cosine, sine = cosine_and_sine(1.0 - mirror)  # of the argument with the pole
    n_above = factor * ((whole - bend) * sine + cosine)
    k_above = factor * ((bend - part) * sine - cosine)
    k_below = factor * ((rest - bend) * sine + cosine)
    by_n = np.where(above, n_above, out * (whole - rest))
    return by_n, np.where(above, k_above, np.where(below, k_below, out * (rest - part)))


@expands(special.comb, shapes=[fixed(4.5), fixed(2.3)])
def comb(N, k, *, exact=False, repetition=False):
    require(not exact, "comb(exact=True) is for integers.", "Leave exact out.")
    require(not repetition, "comb(repetition=True) has no rule.", "Write comb(N + k - 1, k).")
    return np.where((k >= 0) & (k <= N), special.binom(N, k), 0.0)


# ---- incomplete gamma and beta: with respect to the bound ------------------------------------------------------------


@partials(special.gammainc, wrt="x", domain=[(1.7, 1.7), (0.4, 4.0)], nonfinite=True)
def gammainc(a, x):
    return gamma_density(a, x)


@partials(special.gammaincc, wrt="x", domain=[(1.7, 1.7), (0.4, 4.0)], nonfinite=True)
def gammaincc(a, x):
    return -gamma_density(a, x)


def gamma_density(a, x):
    return np.exp(special.xlogy(a - 1.0, x) - x - special.gammaln(a))


@partials(special.betainc, wrt="x", domain=[(1.7, 1.7), (0.6, 0.6), (0.1, 0.7)], nonfinite=True)
def betainc(a, b, x):
    return beta_density(a, b, x)


def beta_density(a, b, x):
    log = special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b)
    return in_precision_of(np.exp(log), a + b + x)


# ---- Bessel functions ----------------------------------------------------------------------------------------------


@partials(special.j0, domain=[(0.3, 4.0)])
def j0(x):
    return -special.j1(x)


@partials(special.j1, domain=[(0.3, 4.0)])
def j1(x, *, out):
    return np.where(x == 0.0, 0.5, special.j0(x) - out / (x + (x == 0.0)))


@partials(special.y0, domain=[(0.3, 4.0)], nonfinite=True)
def y0(x):
    return -special.y1(x)


@partials(special.y1, domain=[(0.3, 4.0)], nonfinite=True)
def y1(x, *, out):
    return special.y0(x) - out / x


@partials(special.i0, domain=[(0.3, 4.0)], nonfinite=True)
def i0(x):
    return special.i1(x)


@partials(special.i1, domain=[(0.3, 4.0)], nonfinite=True)
def i1(x, *, out):
    return np.where(x == 0.0, 0.5, special.i0(x) - out / (x + (x == 0.0)))


@partials(special.i0e, domain=[(0.3, 4.0)])
def i0e(x, *, out):
    return special.i1e(x) - np.sign(x) * out


@partials(special.i1e, domain=[(0.3, 4.0)])
def i1e(x, *, out):
    return np.where(x == 0.0, 0.5, special.i0e(x) - out * (np.sign(x) + 1.0 / (x + (x == 0.0))))


@partials(special.k0, domain=[(0.3, 4.0)], nonfinite=True)
def k0(x):
    return -special.k1(x)


@partials(special.k1, domain=[(0.3, 4.0)], nonfinite=True)
def k1(x, *, out):
    return -special.k0(x) - out / x


@partials(special.k0e, domain=[(0.3, 4.0)], nonfinite=True)
def k0e(x, *, out):
    return out - special.k1e(x)


@partials(special.k1e, domain=[(0.3, 4.0)], nonfinite=True)
def k1e(x, *, out):
    return out - special.k0e(x) - out / x


@partials(special.jv, wrt="z", domain=[(1.3, 1.3), (0.4, 4.0)], nonfinite=True)
def jv(v, z):
    return 0.5 * (special.jv(v - 1.0, z) - special.jv(v + 1.0, z))


@partials(special.yv, wrt="z", domain=[(1.3, 1.3), (0.4, 4.0)], nonfinite=True)
def yv(v, z):
    return 0.5 * (special.yv(v - 1.0, z) - special.yv(v + 1.0, z))


@pullback(special.yn, wrt="x", shapes=[fixed(2), positive], broadcasts=True)
def yn(n, x, *, out_bar):
    return 0.5 * (special.yn(n - 1, x) - special.yn(n + 1, x)) * out_bar


@yn.pushforward
def yn_pushforward(n, x, *, x_dot):
    return 0.5 * (special.yn(n - 1, x) - special.yn(n + 1, x)) * x_dot


@partials(special.iv, wrt="z", domain=[(1.3, 1.3), (0.4, 4.0)], nonfinite=True)
def iv(v, z):
    return 0.5 * (special.iv(v - 1.0, z) + special.iv(v + 1.0, z))


@partials(special.ive, wrt="z", domain=[(1.3, 1.3), (0.4, 4.0)], nonfinite=True)
def ive(v, z, *, out):
    return 0.5 * (special.ive(v - 1.0, z) + special.ive(v + 1.0, z)) - np.sign(z) * out


@partials(special.kv, wrt="z", domain=[(1.3, 1.3), (0.4, 4.0)], nonfinite=True)
def kv(v, z):
    return -0.5 * (special.kv(v - 1.0, z) + special.kv(v + 1.0, z))


@partials(special.kve, wrt="z", domain=[(1.3, 1.3), (0.4, 4.0)], nonfinite=True)
def kve(v, z, *, out):
    return out - 0.5 * (special.kve(v - 1.0, z) + special.kve(v + 1.0, z))


# ---- hypergeometric functions: with respect to the last argument -----------------------------------------------------


@partials(special.hyp0f1, wrt="z", domain=[(1.3, 1.3), (0.1, 0.7)], nonfinite=True)
def hyp0f1(v, z):
    return special.hyp0f1(v + 1.0, z) / v


@partials(special.hyp1f1, wrt="x", domain=[(0.7, 0.7), (1.3, 1.3), (0.1, 0.7)], nonfinite=True)
def hyp1f1(a, b, x):
    return a / b * special.hyp1f1(a + 1.0, b + 1.0, x)


@partials(special.hyp2f1, wrt="z", domain=[(0.7, 0.7), (0.4, 0.4), (1.3, 1.3), (0.1, 0.7)], nonfinite=True)
def hyp2f1(a, b, c, z):
    return a * b / c * special.hyp2f1(a + 1.0, b + 1.0, c + 1.0, z)
