"""Log-likelihood of a Gaussian mixture: what a point needs twice is kept for that point alone."""

import math

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(alphas, means, factors, x):
    n, d = x.shape
    components = alphas.size
    scales = np.exp(factors[:, :d])
    constants = np.empty(components)
    for k in range(components):
        constants[k] = alphas[k]
        for i in range(d):
            constants[k] += factors[k, i]
    alphas_bar = np.zeros(components)
    means_bar = np.zeros((components, d))
    factors_bar = np.zeros(factors.shape)
    centred = np.empty((components, d))
    rows = np.empty((components, d))
    terms = np.empty(components)
    centred_bar = np.empty(d)
    total = 0.0
    for p in range(n):
        top = -math.inf
        for k in range(components):
            square = 0.0
            packed = d
            for i in range(d):
                centred[k, i] = x[p, i] - means[k, i]
            for i in range(d):
                row = scales[k, i] * centred[k, i]
                for j in range(i):
                    row += factors[k, packed + j] * centred[k, j]
                packed += i
                rows[k, i] = row
                square += row * row
            terms[k] = constants[k] - 0.5 * square
            top = max(top, terms[k])
        mass = 0.0
        for k in range(components):
            terms[k] = math.exp(terms[k] - top)
            mass += terms[k]
        total += math.log(mass) + top
        for k in range(components):
            share = terms[k] / mass
            alphas_bar[k] += share
            packed = d
            for i in range(d):
                centred_bar[i] = 0.0
            for i in range(d):
                row_bar = -share * rows[k, i]
                centred_bar[i] += row_bar * scales[k, i]
                factors_bar[k, i] += row_bar * scales[k, i] * centred[k, i]
                for j in range(i):
                    factors_bar[k, packed + j] += row_bar * centred[k, j]
                    centred_bar[j] += row_bar * factors[k, packed + j]
                packed += i
            for i in range(d):
                means_bar[k, i] -= centred_bar[i]
    mass = 0.0
    for k in range(components):
        mass += math.exp(alphas[k])
    for k in range(components):
        for i in range(d):
            factors_bar[k, i] += alphas_bar[k]
        alphas_bar[k] -= n * math.exp(alphas[k]) / mass
    return total - n * math.log(mass), (alphas_bar, means_bar, factors_bar)
