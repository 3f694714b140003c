"""Functions of `scipy.special`."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tapegen.rules.helpers import keep_axis, kept_sum, require
from tapegen.rules.registry import fixed, partials, pullback


def positive(rng):
    """Arguments of functions with poles at 0, -1, ..."""
    return rng.uniform(0.4, 4.0, 5)


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


@pullback(special.logsumexp, wrt=("a", "b"), shapes=[(3, 4)])
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


# ---- gamma and Bessel functions ------------------------------------------------------------------------------------


@partials(special.gamma, domain=[(0.3, 4.0)], nonfinite=True)
def gamma(x, *, out):
    return out * special.digamma(x)


@partials(special.gammaln, domain=[(0.3, 4.0)], nonfinite=True)
def gammaln(x):
    return special.digamma(x)


@partials(special.digamma, domain=[(0.3, 4.0)], nonfinite=True)
def digamma(x):
    return special.zeta(2.0, x)


@pullback(special.polygamma, wrt="x", shapes=[fixed(1), positive])
def polygamma(n, x, *, out_bar):
    return special.polygamma(n + 1, x) * out_bar


@polygamma.pushforward
def polygamma_pushforward(n, x, *, x_dot):
    return special.polygamma(n + 1, x) * x_dot


@pullback(special.zeta, wrt="q", shapes=[fixed(2.0), positive])
def zeta(x, q, *, out_bar):
    return -x * special.zeta(x + 1.0, q) * out_bar


@zeta.pushforward
def zeta_pushforward(x, q, *, q_dot):
    return -x * special.zeta(x + 1.0, q) * q_dot


@partials(special.beta, domain=[(0.3, 4.0), (0.3, 4.0)], nonfinite=True)
def beta(a, b, *, out):
    both = special.digamma(a + b)
    return out * (special.digamma(a) - both), out * (special.digamma(b) - both)


@partials(special.betaln, domain=[(0.3, 4.0), (0.3, 4.0)], nonfinite=True)
def betaln(a, b):
    both = special.digamma(a + b)
    return special.digamma(a) - both, special.digamma(b) - both


@partials(special.j0, domain=[(0.3, 4.0)])
def j0(x):
    return -special.j1(x)


@partials(special.j1, domain=[(0.3, 4.0)])
def j1(x, *, out):
    return np.where(x == 0.0, 0.5, special.j0(x) - out / (x + (x == 0.0)))


@partials(special.i0, domain=[(0.3, 4.0)], nonfinite=True)
def i0(x):
    return special.i1(x)


@partials(special.i1, domain=[(0.3, 4.0)], nonfinite=True)
def i1(x, *, out):
    return np.where(x == 0.0, 0.5, special.i0(x) - out / (x + (x == 0.0)))
