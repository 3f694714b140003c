"""Likelihood of allele counts under selection and drift: a Wright-Fisher chain as a matrix, with a bottleneck."""

import numpy as np
from math import comb, lgamma, exp, log


def transition(N, s, h, mu):
    size = N + 1
    P = np.zeros((size, size))
    for i in range(size):
        p = i / N
        w11, w12, w22 = 1 + s, 1 + h * s, 1.0
        mean = p * p * w11 + 2 * p * (1 - p) * w12 + (1 - p) ** 2 * w22
        q = (p * p * w11 + p * (1 - p) * w12) / mean
        q = (1 - mu) * q + mu * (1 - q)
        for j in range(size):
            P[i, j] = comb(N, j) * q**j * (1 - q) ** (N - j)
    return P


def evolve(prior, schedule, s, h, mu):
    dist = prior.copy()
    for generations, N in schedule:
        if len(dist) != N + 1:
            grid = np.linspace(0, 1, N + 1)
            old = np.linspace(0, 1, len(dist))
            dist = np.interp(grid, old, dist)
            dist /= dist.sum()
        P = transition(N, s, h, mu)
        while generations > 0:
            if generations % 2:
                dist = dist @ P
            P = P @ P
            generations //= 2
    return dist


def sample_loglik(dist, counts, n):
    freq = np.arange(len(dist)) / (len(dist) - 1)
    total = 0.0
    for k in counts:
        logc = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        inner = freq[1:-1]
        like = exp(logc) * np.sum(dist[1:-1] * inner**k * (1 - inner) ** (n - k))
        total += log(like + 1e-300)
    return total


def f(selection, dominance, logmu, counts):
    mu = 10**logmu
    start = np.full(9, 1.0)
    start[[0, -1]] = 0.0
    start /= start.sum()
    dist = evolve(start, [(5, 8), (3, 4), (6, 10)], selection, dominance, mu)
    return -sample_loglik(dist, counts, 6) + 0.5 * selection**2


ARGS = (0.12, 0.4, -2.5, (1, 3, 4))
