"""Logit equilibrium of a two-player game by damped iteration, and Shapley values of a small cost game."""

from itertools import permutations

import numpy as np


def logit(payoffs, precision):
    z = precision * payoffs
    z -= z.max()
    p = np.exp(z)
    return p / p.sum()


def equilibrium(A, B, precision, damping=0.5, tol=1e-11):
    p = np.ones(A.shape[0]) / A.shape[0]
    q = np.ones(A.shape[1]) / A.shape[1]
    for it in range(200):
        p_new = damping * p + (1 - damping) * logit(A @ q, precision)
        q_new = damping * q + (1 - damping) * logit(B.T @ p_new, precision)
        change = max(np.abs(p_new - p).max(), np.abs(q_new - q).max())
        p, q = p_new, q_new
        if change < tol:
            break
    else:
        raise RuntimeError("no equilibrium")
    return p, q


def cost(coalition, weights, fixed):
    if not coalition:
        return 0.0
    total = fixed
    for player in coalition:
        total += weights[player]
    return total * (0.8 if len(coalition) == 3 else 1.0) + max(weights[i] for i in coalition)


def shapley(weights, fixed):
    n = len(weights)
    share = [0.0] * n
    orders = list(permutations(range(n)))
    for order in orders:
        before = ()
        for player in order:
            after = before + (player,)
            share[player] += (cost(after, weights, fixed) - cost(before, weights, fixed)) / len(orders)
            before = after
    return share


def f(A, precision, weights, fixed):
    B = -A + 0.1 * A**2
    p, q = equilibrium(A, B, precision)
    value = p @ A @ q
    gap = np.max(A @ q) - value
    s = shapley(weights, fixed)
    return value + 0.3 * gap + s[0] * s[1] - s[2]


ARGS = (np.array([[1.0, -0.5, 0.2], [-0.3, 0.8, -0.1]]), 1.4, [1.0, 2.5, 1.7], 0.6)
