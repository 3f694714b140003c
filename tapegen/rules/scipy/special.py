"""Functions of `scipy.special`: logistic, entropy, powers, error functions and integrals."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tapegen.rules.external_functions import has_vector_variant, of_numbers, same_number
from tapegen.rules.helpers import keep_axis, kept_sum, require
from tapegen.rules.registry import fixed, inactive, partials, pullback
from tapegen.rules.templates import template

of_numbers(special.expit, special.log_expit, special.logit, special.xlogy, special.xlog1py, special.entr)
of_numbers(special.rel_entr, special.kl_div, special.huber, special.pseudo_huber, special.boxcox, special.boxcox1p)
of_numbers(special.expm1, special.log1p, special.cbrt, special.exp2, special.exp10)
of_numbers(special.erf, special.erfc, special.erfcx, special.erfinv, special.erfcinv, special.ndtr, special.log_ndtr)
of_numbers(special.ndtri, special.owens_t, special.dawsn, special.exp1, special.expi, special.expn, special.spence)
same_number(special.erf, math.erf)
has_vector_variant(special.erfc, "verfc")
has_vector_variant(special.ndtr, "vndtr")
same_number(special.log1p, np.log1p)


# ---- logistic ------------------------------------------------------------------------------------------------------


@partials(special.expit, domain=[(-2.0, 2.0)])
def expit(x, *, out):
    return out * (1.0 - out)


@partials(special.log_expit, domain=[(-2.0, 2.0)])
def log_expit(x):
    return special.expit(-x)


@partials(special.logit, domain=[(0.2, 0.8)], nonfinite=True)
def logit(x):
    return 1.0 / (x * (1.0 - x))


@pullback(special.logsumexp, wrt=("a", "b"), shapes=[(3, 4)], broadcasts=True)
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, *, out, out_bar):
    require(not return_sign, "logsumexp(return_sign=True) has no rule.", "Leave return_sign out.")
    top = keep_axis(np.where(np.isfinite(out), out, 0.0), axis, keepdims)
    share = np.exp(a - top) * keep_axis(out_bar, axis, keepdims)
    if b is None:
        return share, None
    return b * share, share


@logsumexp.pushforward
def logsumexp_pushforward(a, axis=None, b=None, keepdims=False, return_sign=False, *, out, a_dot, b_dot):
    top = keep_axis(np.where(np.isfinite(out), out, 0.0), axis, keepdims)
    share = np.exp(a - top)
    if b is None:
        return np.sum(share * a_dot, axis=axis, keepdims=keepdims)
    return np.sum(share * (b * a_dot + b_dot), axis=axis, keepdims=keepdims)


@pullback(special.softmax, shapes=[(3, 4)])
def softmax(x, axis=None, *, out, out_bar):
    return out * (out_bar - kept_sum(out * out_bar, axis))


@softmax.pushforward
def softmax_pushforward(x, axis=None, *, out, x_dot):
    return out * (x_dot - kept_sum(out * x_dot, axis))


@pullback(special.log_softmax, shapes=[(3, 4)])
def log_softmax(x, axis=None, *, out, out_bar):
    return out_bar - np.exp(out) * kept_sum(out_bar, axis)


@log_softmax.pushforward
def log_softmax_pushforward(x, axis=None, *, out, x_dot):
    return x_dot - kept_sum(np.exp(out) * x_dot, axis)


@template(special.logsumexp)
def logsumexp_text(a, axis=None, b=None, keepdims=False, return_sign=False):
    require(not return_sign, "logsumexp(return_sign=True) has no rule.", "Leave return_sign out.")
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    share = np.exp(a - top)
    if b is not None:
        share = b * share
    log = np.log(np.sum(share, axis=axis, keepdims=keepdims))
    if keepdims:
        return log + top
    return log + np.squeeze(top, axis=axis)


@template(special.softmax)
def softmax_text(x, axis=None):
    share = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return share / np.sum(share, axis=axis, keepdims=True)


@template(special.log_softmax)
def log_softmax_text(x, axis=None):
    below = x - np.max(x, axis=axis, keepdims=True)
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


# ---- entropy -------------------------------------------------------------------------------------------------------


@partials(special.xlogy, domain=[(0.3, 2.0), (0.3, 2.0)], nonfinite=True)
def xlogy(x, y):
    """`x * log(y)`, which is 0 for x = 0 whatever y is."""
    return np.log(y), x / (y + ((x == 0.0) & (y == 0.0)))


@partials(special.xlog1py, domain=[(0.3, 2.0), (-0.5, 2.0)], nonfinite=True)
def xlog1py(x, y):
    return np.log1p(y), x / (1.0 + y + ((x == 0.0) & (y == -1.0)))


@partials(special.entr, domain=[(0.3, 2.0)], nonfinite=True)
def entr(x):
    return -np.log(x) - 1.0


@partials(special.rel_entr, domain=[(0.3, 2.0), (0.3, 2.0)], nonfinite=True)
def rel_entr(x, y):
    return np.log(x / y) + 1.0, -x / y


@partials(special.kl_div, domain=[(0.3, 2.0), (0.3, 2.0)], nonfinite=True)
def kl_div(x, y):
    return np.log(x / y), 1.0 - x / y


@partials(special.huber, domain=[(0.5, 0.6), (0.7, 2.0)])
def huber(delta, r):
    return np.where(np.abs(r) <= delta, 0.0, np.abs(r) - delta), np.clip(r, -delta, delta)


@partials(special.pseudo_huber, domain=[(0.3, 2.0), (-2.0, 2.0)], nonfinite=True)
def pseudo_huber(delta, r):
    root = np.hypot(delta, r)
    return delta * (np.square(root - delta) / (delta * root)), r * delta / root


# ---- powers --------------------------------------------------------------------------------------------------------


def mean_power(u):
    """`((u - 1) * exp(u) + 1) / u**2`, without cancellation."""
    q = 1.0 / 144.0 + u * (1.0 / 840.0 + u * (1.0 / 5760.0 + u * (1.0 / 45360.0 + u * (1.0 / 403200.0))))
    series = 0.5 + u * (1.0 / 3.0 + u * (1.0 / 8.0 + u * (1.0 / 30.0 + u * q)))
    square = u * u
    return np.where(np.abs(u) < 0.1, series, (u * np.exp(u) - np.expm1(u)) / (square + (square == 0.0)))


@partials(special.boxcox, domain=[(0.3, 3.0), (-2.0, 2.0)], nonfinite=True)
def boxcox(x, lmbda):
    """With u = lmbda * log(x), `expm1(u) / lmbda`."""
    log = np.log(x)
    return np.exp((lmbda - 1.0) * log), log * log * mean_power(lmbda * log)


@partials(special.boxcox1p, domain=[(-0.6, 2.0), (-2.0, 2.0)], nonfinite=True)
def boxcox1p(x, lmbda):
    log = np.log1p(x)
    return np.exp((lmbda - 1.0) * log), log * log * mean_power(lmbda * log)


@partials(special.expm1, domain=[(-2.0, 2.0)], nonfinite=True)
def expm1(x, *, out):
    return out + 1.0


@partials(special.log1p, domain=[(-0.7, 2.0)], nonfinite=True)
def log1p(x):
    return 1.0 / (1.0 + x)


@partials(special.cbrt, domain=[(0.3, 2.0)], nonfinite=True)
def cbrt(x, *, out):
    return 1.0 / (3.0 * out * out)


@partials(special.exp2, domain=[(-2.0, 2.0)], nonfinite=True)
def exp2(x, *, out):
    return math.log(2.0) * out


@partials(special.exp10, domain=[(-2.0, 2.0)], nonfinite=True)
def exp10(x, *, out):
    return math.log(10.0) * out


# ---- error function and normal distribution ------------------------------------------------------------------------


@partials(special.erf, domain=[(-2.0, 2.0)])
def erf(x):
    return 2.0 / math.sqrt(math.pi) * np.exp(-x * x)


@partials(special.erfc, domain=[(-2.0, 2.0)])
def erfc(x):
    return -2.0 / math.sqrt(math.pi) * np.exp(-x * x)


@partials(special.erfcx, domain=[(-2.0, 2.0)], nonfinite=True)
def erfcx(x, *, out):
    return 2.0 * x * out - 2.0 / math.sqrt(math.pi)


of_numbers(special.wofz, dtype="complex128")


@partials(special.wofz, domain=[(-2.0, 2.0)], of_complex=True)
def wofz(z, *, out):
    """Of real numbers it is complex too."""
    return 2j / math.sqrt(math.pi) - 2.0 * z * out


@partials(special.erfinv, domain=[(-0.8, 0.8)], nonfinite=True)
def erfinv(x, *, out):
    return 0.5 * math.sqrt(math.pi) * np.exp(out * out)


@partials(special.erfcinv, domain=[(0.2, 1.8)], nonfinite=True)
def erfcinv(x, *, out):
    return -0.5 * math.sqrt(math.pi) * np.exp(out * out)


@partials(special.ndtr, domain=[(-2.0, 2.0)])
def ndtr(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


@partials(special.log_ndtr, domain=[(-2.0, 2.0)], nonfinite=True)
def log_ndtr(x, *, out):
    return np.exp(-0.5 * x * x - out) / math.sqrt(2.0 * math.pi)


@partials(special.ndtri, domain=[(0.2, 0.8)], nonfinite=True)
def ndtri(x, *, out):
    return math.sqrt(2.0 * math.pi) * np.exp(0.5 * out * out)


@partials(special.owens_t, domain=[(-2.0, 2.0), (-2.0, 2.0)])
def owens_t(h, a):
    slope = math.sqrt(1.0 / (8.0 * math.pi)) * np.exp(-0.5 * h * h)
    grown = 1.0 + a * a
    return -slope * special.erf(math.sqrt(0.5) * a * h), np.exp(-0.5 * h * h * grown) / (2.0 * math.pi * grown)


# ---- integrals -----------------------------------------------------------------------------------------------------


def positive(rng):
    """Arguments of functions with a singularity at 0."""
    return rng.uniform(0.4, 4.0, 5)


@partials(special.dawsn, domain=[(-2.0, 2.0)])
def dawsn(x, *, out):
    return 1.0 - 2.0 * x * out


@partials(special.exp1, domain=[(0.3, 4.0)], nonfinite=True)
def exp1(x):
    return -np.exp(-x) / x


@partials(special.expi, domain=[(0.3, 4.0)], nonfinite=True)
def expi(x):
    return np.exp(x) / x


@pullback(special.expn, wrt="x", shapes=[fixed(2), positive], broadcasts=True)
def expn(n, x, *, out_bar):
    return -expn_below(n, x) * out_bar


@expn.pushforward
def expn_pushforward(n, x, *, x_dot):
    return -expn_below(n, x) * x_dot


def expn_below(n, x):
    """`expn(n - 1, x)`, also for n = 0."""
    first = np.exp(-x) * (1.0 / x + 1.0 / (x * x))
    return np.where(n > 0, special.expn(np.maximum(n - 1, 0), x), first)


@partials(special.spence, domain=[(0.3, 0.9)], nonfinite=True)
def spence(z):
    """Near 1 a series in `z - 1`, whose own derivatives do not cancel there."""
    u = z - 1.0
    near = np.abs(u) < 0.01
    series = -1.0 + u * (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u * (1 / 6 - u * (1 / 7 - u / 8))))))
    return np.where(near, series, np.log(z) / np.where(near, 1.0, -u))


@pullback(special.sici, wrt="x", shapes=[positive])
def sici(x, *, out_bar):
    return sine_integrand(x) * out_bar[0] + np.cos(x) / x * out_bar[1]


@sici.pushforward
def sici_pushforward(x, *, x_dot):
    return sine_integrand(x) * x_dot, np.cos(x) / x * x_dot


def sine_integrand(x):
    return np.sinc(x / math.pi)


@pullback(special.fresnel, wrt="z", shapes=[positive])
def fresnel(z, *, out_bar):
    phase = 0.5 * math.pi * z * z
    return np.sin(phase) * out_bar[0] + np.cos(phase) * out_bar[1]


@fresnel.pushforward
def fresnel_pushforward(z, *, z_dot):
    phase = 0.5 * math.pi * z * z
    return np.sin(phase) * z_dot, np.cos(phase) * z_dot


# what compiled code calls for one of the two results


def sine_integral(x):
    return special.sici(x)[0]


def cosine_integral(x):
    return special.sici(x)[1]


def fresnel_sine(z):
    return special.fresnel(z)[0]


def fresnel_cosine(z):
    return special.fresnel(z)[1]


of_numbers(sine_integral, cosine_integral, fresnel_sine, fresnel_cosine)


@template(special.sici)
def sici_text(x):
    return sine_integral(x), cosine_integral(x)


@template(special.fresnel)
def fresnel_text(z):
    return fresnel_sine(z), fresnel_cosine(z)


inactive(sine_integral, cosine_integral, fresnel_sine, fresnel_cosine)  # their calls are written when all is derived


# ---- spherical harmonics -------------------------------------------------------------------------------------------


@pullback(
    special.sph_harm_y, wrt=("theta", "phi"), shapes=[fixed(3), fixed(-2), (5,), (5,)], of_complex=True, broadcasts=True
)
def sph_harm_y(n, m, theta, phi, *, out, out_bar):
    return np.real(out_bar * down_the_meridian(n, m, theta, phi)), np.real(out_bar * (1j * m * out))


@sph_harm_y.pushforward
def sph_harm_y_pushforward(n, m, theta, phi, *, out, theta_dot, phi_dot):
    return down_the_meridian(n, m, theta, phi) * theta_dot + (1j * m * out) * phi_dot


def down_the_meridian(n, m, theta, phi):
    """By the angle from the pole, where this divides by nothing: half the difference of the neighbours in m.

    Beyond the poles scipy takes the sine as positive.
    """
    turn = np.exp(1j * phi)
    kind = np.result_type(theta, phi)
    above = np.astype(np.sqrt(np.maximum((n - m) * (n + m + 1), 0)), kind)
    below = np.astype(np.sqrt(np.maximum((n + m) * (n - m + 1), 0)), kind)
    upper = above * np.conj(turn) * special.sph_harm_y(n, m + 1, theta, phi)
    slope = 0.5 * (upper - below * turn * special.sph_harm_y(n, m - 1, theta, phi))
    return np.where(np.sin(theta) < 0.0, -slope, slope)
