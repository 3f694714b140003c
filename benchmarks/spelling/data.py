"""Options, logistic regression, mixtures, residuals of a time series."""

import dataclasses
import math

import numpy as np
from scipy.special import erf, logsumexp, ndtr

from benchmarks.spelling import Kernel, Spelling, spelled

ROOT_HALF = 0.7071067811865476


def black_scholes_by_loop(spot, strike, maturity, rate, volatility):
    total = 0.0
    for i in range(len(spot)):
        spread = volatility * math.sqrt(maturity[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + 0.5 * volatility**2) * maturity[i]) / spread
        d2 = d1 - spread
        below1 = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
        below2 = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
        total += spot[i] * below1 - strike[i] * math.exp(-rate * maturity[i]) * below2
    return total


def black_scholes_by_arrays(spot, strike, maturity, rate, volatility):
    spread = volatility * np.sqrt(maturity)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * maturity) / spread
    d2 = d1 - spread
    return np.sum(spot * ndtr(d1) - strike * np.exp(-rate * maturity) * ndtr(d2))


def cdf(x):
    return 0.5 + 0.5 * erf(x * ROOT_HALF)


def call_price(spot, strike, maturity, rate, volatility):
    d1 = (np.log(spot / strike) + (rate + volatility * volatility / 2) * maturity) / (volatility * np.sqrt(maturity))
    d2 = d1 - volatility * np.sqrt(maturity)
    return spot * cdf(d1) - strike * np.exp(-rate * maturity) * cdf(d2)


def black_scholes_by_helper(spot, strike, maturity, rate, volatility):
    return call_price(spot, strike, maturity, rate, volatility).sum()


def black_scholes_by_zip(spot, strike, maturity, rate, volatility):
    total = 0.0
    for s, k, t in zip(spot, strike, maturity, strict=True):
        total += call_price(s, k, t, rate, volatility)
    return total


def black_scholes_by_prices(spot, strike, maturity, rate, volatility):
    n = spot.shape[0]
    prices = np.zeros(n)
    i = 0
    while i < n:
        root = math.sqrt(maturity[i])
        d1 = (math.log(spot[i]) - math.log(strike[i]) + rate * maturity[i]) / (
            volatility * root
        ) + volatility * root / 2
        d2 = d1 - volatility * root
        prices[i] = spot[i] * (1 + math.erf(d1 * ROOT_HALF)) / 2
        prices[i] -= strike[i] * math.exp(-rate * maturity[i]) * (1 + math.erf(d2 * ROOT_HALF)) / 2
        i += 1
    return np.sum(prices)


def black_scholes_by_market(market):
    t = market["maturity"]
    spread = market["volatility"] * np.sqrt(t)
    d1 = (np.log(market["spot"] / market["strike"]) + market["rate"] * t) / spread + spread / 2
    discount = np.exp(-market["rate"] * t)
    return np.sum(market["spot"] * cdf(d1) - market["strike"] * discount * cdf(d1 - spread))


def black_scholes_args(n=200_000):
    rng = np.random.default_rng(0)
    return rng.uniform(20.0, 30.0, n), rng.uniform(20.0, 40.0, n), rng.uniform(0.5, 2.0, n), 0.05, 0.3


MARKET = ("spot", "strike", "maturity", "rate", "volatility")
BLACK_SCHOLES = Kernel(
    black_scholes_args,
    (7,),
    (0, 1, 2, 3, 4),
    spelled(
        *(black_scholes_by_loop, black_scholes_by_arrays, black_scholes_by_helper, black_scholes_by_zip),
        black_scholes_by_prices,
        dict=Spelling(
            black_scholes_by_market,
            lambda *args: (dict(zip(MARKET, args, strict=True)),),
            (0,),
            lambda market: tuple(market[name] for name in MARKET),
        ),
    ),
)


def logreg_by_arrays(w, x, y):
    z = x @ w
    return np.sum(np.log1p(np.exp(-y * z))) + 0.5 * np.sum(w * w)


def logreg_by_loops(w, x, y):
    n, d = x.shape
    total = 0.0
    for i in range(n):
        z = 0.0
        for j in range(d):
            z += x[i, j] * w[j]
        total += math.log(1.0 + math.exp(-y[i] * z))
    for j in range(d):
        total += 0.5 * w[j] ** 2
    return total


def logreg_by_rows(w, x, y):
    loss = 0.0
    for i in range(len(y)):
        margin = y[i] * np.dot(x[i], w)
        loss += np.log1p(np.exp(-margin))
    return loss + np.dot(w, w) / 2


def logreg_by_zip(w, x, y):
    loss = 0.5 * (w @ w)
    for row, label in zip(x, y, strict=True):
        loss = loss + np.logaddexp(0.0, -label * np.sum(row * w))
    return loss


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def logreg_by_probabilities(w, x, y):
    return -np.sum(np.log(sigmoid(y * (x @ w)))) + 0.5 * np.sum(w**2)


@dataclasses.dataclass
class Sample:
    x: np.ndarray
    y: np.ndarray


def logreg_by_sample(w, sample):
    margins = sample.y * np.einsum("ij,j->i", sample.x, w)
    losses = np.where(margins > 0, np.log1p(np.exp(-np.abs(margins))), -margins + np.log1p(np.exp(-np.abs(margins))))
    return losses.sum() + 0.5 * (w**2).sum()


def logreg_args(n=20_000, d=50):
    rng = np.random.default_rng(0)
    return rng.normal(size=d) / np.sqrt(d), rng.normal(size=(n, d)), np.sign(rng.normal(size=n))


LOGREG = Kernel(
    logreg_args,
    (7, 4),
    (0,),
    spelled(
        *(logreg_by_arrays, logreg_by_loops, logreg_by_rows, logreg_by_zip, logreg_by_probabilities),
        dataclass=Spelling(logreg_by_sample, lambda w, x, y: (w, Sample(x, y))),
    ),
)


def gmm_by_counter(alphas, means, factors, x):
    n, d = x.shape
    components = len(alphas)
    terms = np.empty(components)
    centred = np.empty(d)
    total = 0.0
    for p in range(n):
        for k in range(components):
            for i in range(d):
                centred[i] = x[p, i] - means[k, i]
            square = 0.0
            logdet = 0.0
            packed = d
            for i in range(d):
                logdet += factors[k, i]
                row = math.exp(factors[k, i]) * centred[i]
                for j in range(i):
                    row += factors[k, packed] * centred[j]
                    packed += 1
                square += row * row
            terms[k] = alphas[k] + logdet - 0.5 * square
        top = terms[0]
        for k in range(1, components):
            if terms[k] > top:
                top = terms[k]
        mass = 0.0
        for k in range(components):
            mass += math.exp(terms[k] - top)
        total += math.log(mass) + top
    mass = 0.0
    for k in range(components):
        mass += math.exp(alphas[k])
    return total - n * math.log(mass)


def gmm_by_index(alphas, means, factors, x):
    n, d = x.shape
    components = len(alphas)
    total = 0.0
    for p in range(n):
        terms = np.zeros(components)
        for k in range(components):
            square = 0.0
            for i in range(d):
                row = np.exp(factors[k, i]) * (x[p, i] - means[k, i])
                for j in range(i):
                    row += factors[k, d + i * (i - 1) // 2 + j] * (x[p, j] - means[k, j])
                square += row**2
            terms[k] = alphas[k] + np.sum(factors[k, :d]) - 0.5 * square
        top = np.max(terms)
        total += top + np.log(np.sum(np.exp(terms - top)))
    return total - n * np.log(np.sum(np.exp(alphas)))


def factor_of(packed, d):
    factor = np.zeros((d, d))
    start = d
    for i in range(d):
        factor[i, i] = np.exp(packed[i])
        factor[i, :i] = packed[start : start + i]
        start += i
    return factor


def gmm_by_factors(alphas, means, factors, x):
    n, d = x.shape
    terms = np.zeros((n, len(alphas)))
    for k in range(len(alphas)):
        rows = (x - means[k]) @ factor_of(factors[k], d).T
        terms[:, k] = alphas[k] + np.sum(factors[k, :d]) - 0.5 * np.sum(rows**2, axis=1)
    return np.sum(logsumexp(terms, axis=1)) - n * logsumexp(alphas)


def log_density(mean, packed, point):
    d = point.size
    centred = point - mean
    rows = np.exp(packed[:d]) * centred
    start = d
    for i in range(1, d):
        rows[i] += packed[start : start + i] @ centred[:i]
        start += i
    return np.sum(packed[:d]) - 0.5 * (rows @ rows)


def gmm_by_points(alphas, means, factors, x):
    total = 0.0
    terms = np.empty(alphas.size)
    for point in x:
        for k in range(alphas.size):
            terms[k] = alphas[k] + log_density(means[k], factors[k], point)
        total += logsumexp(terms)
    return total - len(x) * logsumexp(alphas)


def gmm_by_model(model, x):
    alphas, means, factors = model
    return gmm_by_points(alphas, means, factors, x)


def gmm_args(n=1000, d=10, components=25):
    rng = np.random.default_rng(0)
    packed = d + d * (d - 1) // 2
    return (
        rng.normal(size=components),
        rng.normal(size=(components, d)),
        0.3 * rng.normal(size=(components, packed)),
        rng.normal(size=(n, d)),
    )


GMM = Kernel(
    gmm_args,
    (5, 3, 2),
    (0, 1, 2),
    spelled(
        *(gmm_by_counter, gmm_by_index, gmm_by_factors, gmm_by_points),
        tuple=Spelling(gmm_by_model, lambda a, m, f, x: ((a, m, f), x), (0,), lambda model: model),
    ),
)


def ar_filter_by_scalar(phi, theta, y):
    e = 0.0
    total = 0.0
    for t in range(2, len(y)):
        e = y[t] - phi[0] * y[t - 1] - phi[1] * y[t - 2] - theta * e
        total += e * e
    return total


def ar_filter_by_array(phi, theta, y):
    n = y.size
    e = np.zeros(n)
    for t in range(2, n):
        e[t] = y[t] - phi[0] * y[t - 1] - phi[1] * y[t - 2] - theta * e[t - 1]
    return np.sum(e**2)


def ar_filter_by_list(phi, theta, y):
    e = [0.0]
    for t in range(2, len(y)):
        e.append(y[t] - phi[0] * y[t - 1] - phi[1] * y[t - 2] - theta * e[-1])
    return sum(each**2 for each in e)


def ar_filter_by_guards(phi, theta, y):
    e = np.empty_like(y)
    total = 0.0
    for t in range(len(y)):
        predicted = 0.0
        if t >= 2:
            for lag in range(len(phi)):
                predicted += phi[lag] * y[t - 1 - lag]
            e[t] = y[t] - predicted - theta * e[t - 1]
        else:
            e[t] = 0.0
        total += e[t] ** 2
    return total


def ar_filter_by_while(phi, theta, y):
    first, second = phi
    before, last = y[0], y[1]
    e, total = 0.0, 0.0
    t = 2
    while t < y.shape[0]:
        e = y[t] - first * last - second * before - theta * e
        before, last = last, y[t]
        total += e**2
        t += 1
    return total


def ar_filter_by_in_place(phi, theta, y):
    e = y[2:] - phi[0] * y[1:-1] - phi[1] * y[:-2]
    for t in range(1, len(e)):
        e[t] -= theta * e[t - 1]
    return e @ e


def ar_filter_args(n=1_000_000):
    return np.array([0.6, -0.2]), 0.4, np.random.default_rng(0).normal(size=n)


AR_FILTER = Kernel(
    ar_filter_args,
    (9,),
    (0, 1),
    spelled(
        *(ar_filter_by_scalar, ar_filter_by_array, ar_filter_by_list, ar_filter_by_guards, ar_filter_by_while),
        ar_filter_by_in_place,
    ),
)

KERNELS = {"black_scholes": BLACK_SCHOLES, "logreg": LOGREG, "gmm": GMM, "ar_filter": AR_FILTER}
