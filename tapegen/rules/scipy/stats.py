"""Log densities of `scipy.stats`, and elementary distribution functions.

Outside of the support the logarithm is minus infinity, and its derivative is 0.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from tapegen.rules.registry import expands, fixed

LOG_TWO_PI = math.log(2.0 * math.pi)


def inside(test, log):
    """A logarithm where the density is not 0."""
    return np.where(test, log, -math.inf)


def standardized(x, loc, scale):
    """`(x - loc) / scale` in double precision: so are the results of `scipy.stats`."""
    return in_double((x - loc) / scale)


def in_double(x):
    return x if np.result_type(x) == np.float64 else np.positive(x, dtype=np.float64)


def positive(rng):
    return rng.uniform(0.4, 2.0, 4)


def any_sign(rng):
    return rng.uniform(-1.5, 1.5, 4)


def fraction(rng):
    return rng.uniform(0.1, 0.8, 4)


def counts(rng):
    return np.array([0, 1, 2, 4])


LOC, SCALE = fixed(0.2), fixed(1.3)

# ---- location and scale --------------------------------------------------------------------------------------------


@expands(stats.norm.logpdf, shapes=[any_sign, LOC, SCALE])
def norm_logpdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return -0.5 * z * z - 0.5 * LOG_TWO_PI - np.log(scale)


@expands(stats.norm.pdf, shapes=[any_sign, LOC, SCALE])
def norm_pdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * scale)


@expands(stats.norm.cdf, shapes=[any_sign, LOC, SCALE])
def norm_cdf(x, loc=0.0, scale=1.0):
    return special.ndtr(standardized(x, loc, scale))


@expands(stats.norm.logcdf, shapes=[any_sign, LOC, SCALE])
def norm_logcdf(x, loc=0.0, scale=1.0):
    return special.log_ndtr(standardized(x, loc, scale))


@expands(stats.norm.sf, shapes=[any_sign, LOC, SCALE])
def norm_sf(x, loc=0.0, scale=1.0):
    return special.ndtr(-standardized(x, loc, scale))


@expands(stats.norm.ppf, shapes=[fraction, LOC, SCALE])
def norm_ppf(q, loc=0.0, scale=1.0):
    return in_double(special.ndtri(q) * scale + loc)


@expands(stats.cauchy.logpdf, shapes=[any_sign, LOC, SCALE])
def cauchy_logpdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return -math.log(math.pi) - np.log1p(z * z) - np.log(scale)


@expands(stats.cauchy.cdf, shapes=[any_sign, LOC, SCALE])
def cauchy_cdf(x, loc=0.0, scale=1.0):
    return 0.5 + np.arctan(standardized(x, loc, scale)) / math.pi


@expands(stats.laplace.logpdf, shapes=[any_sign, LOC, SCALE])
def laplace_logpdf(x, loc=0.0, scale=1.0):
    return -np.abs(standardized(x, loc, scale)) - math.log(2.0) - np.log(scale)


@expands(stats.laplace.cdf, shapes=[any_sign, LOC, SCALE])
def laplace_cdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z > 0.0, 1.0 - tail, tail)


@expands(stats.logistic.logpdf, shapes=[any_sign, LOC, SCALE])
def logistic_logpdf(x, loc=0.0, scale=1.0):
    y = -np.abs(standardized(x, loc, scale))
    return y - 2.0 * np.log1p(np.exp(y)) - np.log(scale)


@expands(stats.logistic.cdf, shapes=[any_sign, LOC, SCALE])
def logistic_cdf(x, loc=0.0, scale=1.0):
    return special.expit(standardized(x, loc, scale))


@expands(stats.gumbel_r.logpdf, shapes=[any_sign, LOC, SCALE])
def gumbel_r_logpdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return -z - np.exp(-z) - np.log(scale)


@expands(stats.gumbel_r.cdf, shapes=[any_sign, LOC, SCALE])
def gumbel_r_cdf(x, loc=0.0, scale=1.0):
    return np.exp(-np.exp(-standardized(x, loc, scale)))


@expands(stats.gumbel_l.logpdf, shapes=[any_sign, LOC, SCALE])
def gumbel_l_logpdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return z - np.exp(z) - np.log(scale)


@expands(stats.gumbel_l.cdf, shapes=[any_sign, LOC, SCALE])
def gumbel_l_cdf(x, loc=0.0, scale=1.0):
    return -np.expm1(-np.exp(standardized(x, loc, scale)))


@expands(stats.expon.logpdf, shapes=[positive, fixed(0.1), SCALE])
def expon_logpdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return inside(z >= 0.0, -z - np.log(scale))


@expands(stats.expon.cdf, shapes=[positive, fixed(0.1), SCALE])
def expon_cdf(x, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return np.where(z >= 0.0, -np.expm1(-z), 0.0)


@expands(stats.uniform.logpdf, shapes=[fraction, fixed(-0.2), fixed(1.3)])
def uniform_logpdf(x, loc=0.0, scale=1.0):
    return inside((x >= loc) & (x <= loc + scale), -np.log(scale) + 0.0 * x)


@expands(stats.uniform.cdf, shapes=[fraction, fixed(-0.2), fixed(1.3)])
def uniform_cdf(x, loc=0.0, scale=1.0):
    return np.clip(standardized(x, loc, scale), 0.0, 1.0)


# ---- one or two more parameters ------------------------------------------------------------------------------------


@expands(stats.t.logpdf, shapes=[any_sign, fixed(3.5), LOC, SCALE])
def t_logpdf(x, df, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    half = 0.5 * (df + 1.0)
    constant = special.gammaln(half) - special.gammaln(0.5 * df) - 0.5 * np.log(math.pi * df)
    return constant - half * np.log1p(z * z / df) - np.log(scale)


@expands(stats.gamma.logpdf, shapes=[positive, fixed(1.7), fixed(0.1), SCALE])
def gamma_logpdf(x, a, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return inside(z >= 0.0, special.xlogy(a - 1.0, z) - z - special.gammaln(a) - np.log(scale))


@expands(stats.chi2.logpdf, shapes=[positive, fixed(3.5), fixed(0.1), SCALE])
def chi2_logpdf(x, df, loc=0.0, scale=1.0):
    z = 0.5 * standardized(x, loc, scale)
    half = 0.5 * df
    return inside(z >= 0.0, special.xlogy(half - 1.0, z) - z - special.gammaln(half) - np.log(2.0 * scale))


@expands(stats.beta.logpdf, shapes=[fraction, fixed(1.7), fixed(2.4), fixed(-0.1), fixed(1.3)])
def beta_logpdf(x, a, b, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    log = special.xlog1py(b - 1.0, -z) + special.xlogy(a - 1.0, z) - special.betaln(a, b) - np.log(scale)
    return inside((z >= 0.0) & (z <= 1.0), log)


@expands(stats.pareto.logpdf, shapes=[lambda rng: rng.uniform(1.6, 3.0, 4), fixed(2.3), fixed(0.1), SCALE])
def pareto_logpdf(x, b, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return inside(z >= 1.0, np.log(b) - (b + 1.0) * np.log(z) - np.log(scale))


@expands(stats.pareto.cdf, shapes=[lambda rng: rng.uniform(1.6, 3.0, 4), fixed(2.3), fixed(0.1), SCALE])
def pareto_cdf(x, b, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return np.where(z >= 1.0, -np.expm1(-b * np.log(z)), 0.0)


@expands(stats.gennorm.logpdf, shapes=[positive, fixed(1.7), fixed(0.1), SCALE])
def gennorm_logpdf(x, beta, loc=0.0, scale=1.0):
    z = np.abs(standardized(x, loc, scale))
    return np.log(0.5 * beta) - special.gammaln(1.0 / beta) - z**beta - np.log(scale)


@expands(stats.truncnorm.logpdf, shapes=[fraction, fixed(-0.7), fixed(1.4), fixed(0.1), SCALE])
def truncnorm_logpdf(x, a, b, loc=0.0, scale=1.0):
    """The mass between the bounds is taken in the lower tail, where it is small against neither 1 nor itself."""
    z = standardized(x, loc, scale)
    low = special.log_ndtr(np.where(a > 0.0, -b, a))
    high = special.log_ndtr(np.where(a > 0.0, -a, b))
    mass = high + np.log1p(-np.exp(low - high))
    return inside((z >= a) & (z <= b), -0.5 * z * z - 0.5 * LOG_TWO_PI - mass - np.log(scale))


@expands(stats.vonmises.logpdf, shapes=[any_sign, fixed(1.7), LOC, SCALE])
def vonmises_logpdf(x, kappa, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    return kappa * (np.cos(z) - 1.0) - LOG_TWO_PI - np.log(special.i0e(kappa)) - np.log(scale)


@expands(stats.wrapcauchy.logpdf, shapes=[positive, fixed(0.4), fixed(0.1), SCALE])
def wrapcauchy_logpdf(x, c, loc=0.0, scale=1.0):
    z = standardized(x, loc, scale)
    log = np.log1p(-c * c) - LOG_TWO_PI - np.log(1.0 + c * c - 2.0 * c * np.cos(z)) - np.log(scale)
    return inside((z >= 0.0) & (z <= 2.0 * math.pi), log)


# ---- counts: with respect to the parameters ------------------------------------------------------------------------


@expands(stats.poisson.logpmf, shapes=[counts, fixed(1.7)])
def poisson_logpmf(k, mu, loc=0):
    n = k - loc
    return inside(n >= 0, special.xlogy(n, mu) - special.gammaln(n + 1.0) - mu)


@expands(stats.bernoulli.logpmf, shapes=[fixed(np.array([0, 1])), fixed(0.3)])
def bernoulli_logpmf(k, p, loc=0):
    n = k - loc
    return inside((n >= 0) & (n <= 1), special.xlogy(n, p) + special.xlog1py(1 - n, -p))


@expands(stats.binom.logpmf, shapes=[counts, fixed(5), fixed(0.3)])
def binom_logpmf(k, n, p, loc=0):
    m = k - loc
    choices = special.gammaln(n + 1.0) - special.gammaln(m + 1.0) - special.gammaln(n - m + 1.0)
    return inside((m >= 0) & (m <= n), choices + special.xlogy(m, p) + special.xlog1py(n - m, -p))


@expands(stats.nbinom.logpmf, shapes=[counts, fixed(3.5), fixed(0.3)])
def nbinom_logpmf(k, n, p, loc=0):
    m = k - loc
    choices = special.gammaln(m + n) - special.gammaln(m + 1.0) - special.gammaln(n)
    return inside(m >= 0, choices + n * np.log(p) + special.xlog1py(m, -p))


@expands(stats.geom.logpmf, shapes=[fixed(np.array([1, 2, 5])), fixed(0.3)])
def geom_logpmf(k, p, loc=0):
    n = k - loc
    return inside(n >= 1, special.xlog1py(n - 1, -p) + np.log(p))


@expands(stats.betabinom.logpmf, shapes=[counts, fixed(5), fixed(1.7), fixed(2.4)])
def betabinom_logpmf(k, n, a, b, loc=0):
    m = k - loc
    choices = -np.log(n + 1.0) - special.betaln(n - m + 1.0, m + 1.0)
    return inside((m >= 0) & (m <= n), choices + special.betaln(m + a, n - m + b) - special.betaln(a, b))


# ---- several variables ---------------------------------------------------------------------------------------------


@expands(stats.multinomial.logpmf)
def multinomial_logpmf(x, n, p):
    """The derivative is that along probabilities with the sum 1."""
    return special.gammaln(n + 1.0) + np.sum(special.xlogy(x, p) - special.gammaln(x + 1.0), axis=-1)


@expands(stats.dirichlet.logpdf)
def dirichlet_logpdf(x, alpha):
    constant = special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha))
    return constant + np.sum(special.xlogy(alpha - 1.0, x.T).T, axis=0)


@expands(
    stats.multivariate_normal.logpdf,
    shapes=[(2, 3), (3,), lambda rng: np.diag([1.5, 2.0, 3.0]) + np.tril(rng.uniform(0.1, 0.3, (3, 3)), -1)],
)
def multivariate_normal_logpdf(x, mean, cov, allow_singular=False):
    """Only the lower half of the covariance is read, as scipy does; that of a singular one raises an error."""
    lower = np.linalg.cholesky(cov)
    whitened = np.linalg.solve(lower, (x - mean).T)
    log_det = np.sum(np.log(np.diag(lower)))
    return np.squeeze(-0.5 * np.sum(whitened * whitened, axis=0) - log_det - 0.5 * LOG_TWO_PI * np.shape(cov)[0])
