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


def softmax_by_arrays(logits, labels):
    top = np.max(logits, axis=1, keepdims=True)
    norms = np.log(np.sum(np.exp(logits - top), axis=1)) + top[:, 0]
    return np.mean(norms - logits[np.arange(len(labels)), labels])


def softmax_by_loops(logits, labels):
    n, m = logits.shape
    loss = 0.0
    for i in range(n):
        top = logits[i, 0]
        for j in range(1, m):
            top = max(top, logits[i, j])
        mass = 0.0
        for j in range(m):
            mass += math.exp(logits[i, j] - top)
        loss += math.log(mass) + top - logits[i, labels[i]]
    return loss / n


def softmax_by_rows(logits, labels):
    loss = 0.0
    for row, label in zip(logits, labels, strict=True):
        loss += logsumexp(row) - row[label]
    return loss / len(labels)


def probabilities(row):
    powers = np.exp(row - row.max())
    return powers / powers.sum()


def softmax_by_probabilities(logits, labels):
    loss = 0.0
    for i in range(logits.shape[0]):
        loss -= np.log(probabilities(logits[i])[labels[i]])
    return loss / logits.shape[0]


def softmax_by_params(params, labels):
    logits = params["logits"]
    return np.mean(logsumexp(logits, axis=1) - np.take_along_axis(logits, labels[:, None], axis=1)[:, 0])


def softmax_args(n=2000, m=100):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, m)), rng.integers(0, m, n)


SOFTMAX = Kernel(
    softmax_args,
    (5, 3),
    (0,),
    spelled(
        *(softmax_by_arrays, softmax_by_loops, softmax_by_rows, softmax_by_probabilities),
        dict=Spelling(
            softmax_by_params,
            lambda logits, labels: ({"logits": logits}, labels),
            (0,),
            lambda params: (params["logits"],),
        ),
    ),
)


def kmeans_by_loops(points, centres):
    total = 0.0
    for p in range(points.shape[0]):
        best = math.inf
        for k in range(centres.shape[0]):
            square = 0.0
            for i in range(points.shape[1]):
                square += (points[p, i] - centres[k, i]) ** 2
            if square < best:
                best = square
        total += best
    return total


def kmeans_by_rows(points, centres):
    total = 0.0
    for point in points:
        total += np.min(np.sum((centres - point) ** 2, axis=1))
    return total


def kmeans_by_arrays(points, centres):
    gaps = points[:, None, :] - centres[None, :, :]
    return np.sum(np.min(np.sum(gaps**2, axis=2), axis=1))


def kmeans_by_products(points, centres):
    squares = np.sum(points**2, axis=1)[:, None] - 2 * points @ centres.T + np.sum(centres**2, axis=1)
    return squares.min(axis=1).sum()


def square_distance(a, b):
    d = a - b
    return d @ d


def kmeans_by_helper(points, centres):
    total = 0.0
    for i in range(len(points)):
        total += min([square_distance(points[i], centre) for centre in centres])
    return total


def kmeans_args(n=5000, d=8, k=20):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.normal(size=(k, d))


KMEANS = Kernel(
    kmeans_args,
    (9, 2, 3),
    (1,),
    spelled(kmeans_by_loops, kmeans_by_rows, kmeans_by_arrays, kmeans_by_products, kmeans_by_helper),
)


def asian_option_by_loops(spot, rate, volatility, noise):
    paths, steps = noise.shape
    dt = 1.0 / steps
    total = 0.0
    for p in range(paths):
        s = spot
        mean = 0.0
        for t in range(steps):
            s *= math.exp((rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * noise[p, t])
            mean += s
        total += max(mean / steps - 100.0, 0.0)
    return math.exp(-rate) * total / paths


def asian_option_by_arrays(spot, rate, volatility, noise):
    dt = 1.0 / noise.shape[1]
    logs = np.cumsum((rate - 0.5 * volatility**2) * dt + volatility * np.sqrt(dt) * noise, axis=1)
    means = np.mean(spot * np.exp(logs), axis=1)
    return np.exp(-rate) * np.mean(np.maximum(means - 100.0, 0.0))


def asian_option_by_steps(spot, rate, volatility, noise):
    paths, steps = noise.shape
    dt = 1.0 / steps
    s = np.full(paths, spot)
    total = np.zeros(paths)
    for t in range(steps):
        s = s * np.exp((rate - volatility**2 / 2) * dt + volatility * np.sqrt(dt) * noise[:, t])
        total += s
    payoffs = np.where(total / steps > 100.0, total / steps - 100.0, 0.0)
    return np.exp(-rate) * payoffs.sum() / paths


def path_mean(spot, drift, diffusion, draws):
    s = spot
    total = 0.0
    for z in draws:
        s = s * np.exp(drift + diffusion * z)
        total += s
    return total / len(draws)


def asian_option_by_helper(spot, rate, volatility, noise):
    dt = 1.0 / noise.shape[1]
    price = 0.0
    for row in noise:
        mean = path_mean(spot, (rate - 0.5 * volatility**2) * dt, volatility * math.sqrt(dt), row)
        if mean > 100.0:
            price += mean - 100.0
    return math.exp(-rate) * price / len(noise)


def asian_option_args(paths=4000, steps=50):
    return 100.0, 0.03, 0.2, np.random.default_rng(0).normal(size=(paths, steps))


ASIAN_OPTION = Kernel(
    asian_option_args,
    (8, 4),
    (0, 1, 2),
    spelled(asian_option_by_loops, asian_option_by_arrays, asian_option_by_steps, asian_option_by_helper),
)


def elementwise_chain_by_arrays(x, y):
    u = np.sin(x) * np.exp(-y * y)
    v = np.tanh(u + x * y)
    return np.sum(u * v + np.sin(v) * y)


def elementwise_chain_by_loop(x, y):
    total = 0.0
    for i in range(len(x)):
        u = math.sin(x[i]) * math.exp(-(y[i] ** 2))
        v = math.tanh(u + x[i] * y[i])
        total += u * v + math.sin(v) * y[i]
    return total


def elementwise_chain_by_stores(x, y):
    n = x.size
    u = np.empty(n)
    v = np.empty(n)
    for i in range(n):
        u[i] = np.sin(x[i]) * np.exp(-y[i] * y[i])
    for i in range(n):
        v[i] = np.tanh(u[i] + x[i] * y[i])
    return u @ v + np.sin(v) @ y


def elementwise_chain_by_dots(x, y):
    u = np.exp(-(y**2))
    u *= np.sin(x)
    v = x * y
    v += u
    np.tanh(v, out=v)
    return np.dot(u, v) + np.dot(np.sin(v), y)


def of_pair(a, b):
    u = np.sin(a) * np.exp(-b * b)
    v = np.tanh(u + a * b)
    return u * v + np.sin(v) * b


def elementwise_chain_by_helper(x, y):
    return sum(of_pair(a, b) for a, b in zip(x, y, strict=True))


def elementwise_chain_args(n=200_000):
    rng = np.random.default_rng(0)
    return rng.normal(size=n), rng.normal(size=n)


ELEMENTWISE_CHAIN = Kernel(
    elementwise_chain_args,
    (7,),
    (0, 1),
    spelled(
        *(elementwise_chain_by_arrays, elementwise_chain_by_loop, elementwise_chain_by_stores),
        *(elementwise_chain_by_dots, elementwise_chain_by_helper),
    ),
)


KERNELS = {
    "black_scholes": BLACK_SCHOLES,
    "logreg": LOGREG,
    "gmm": GMM,
    "ar_filter": AR_FILTER,
    "softmax": SOFTMAX,
    "kmeans": KMEANS,
    "asian_option": ASIAN_OPTION,
    "elementwise_chain": ELEMENTWISE_CHAIN,
}
