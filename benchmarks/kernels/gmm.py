"""Log-likelihood of a Gaussian mixture with packed triangular factors: small dense loops and logsumexp."""

import math

import numpy as np

FIRST, GOAL = 2.5, 2.0
WRT = (0, 1, 2)


def f(alphas, means, factors, x):
    n, d = x.shape
    components = alphas.size
    logdet = np.zeros(components)
    for k in range(components):
        for i in range(d):
            logdet[k] += factors[k, i]
    terms = np.empty(components)
    centred = np.empty(d)
    total = 0.0
    for p in range(n):
        for k in range(components):
            for i in range(d):
                centred[i] = x[p, i] - means[k, i]
            square = 0.0
            packed = d
            for i in range(d):
                row = math.exp(factors[k, i]) * centred[i]
                for j in range(i):
                    row += factors[k, packed] * centred[j]
                    packed += 1
                square += row * row
            terms[k] = alphas[k] + logdet[k] - 0.5 * square
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


def args(n=1000, d=10, components=25):
    rng = np.random.default_rng(0)
    packed = d + d * (d - 1) // 2
    return (
        rng.normal(size=components),
        rng.normal(size=(components, d)),
        0.3 * rng.normal(size=(components, packed)),
        rng.normal(size=(n, d)),
    )


def small():
    return args(5, 3, 2)
