"""t-SNE: bandwidths by bisection on the perplexity, joint affinities, one descent step by hand, divergence."""
import numpy as np


def row_affinities(d, i, perplexity):
    lo, hi, beta = 0.0, np.inf, 1.0
    target = np.log(perplexity)
    for _ in range(60):
        p = np.exp(-beta * d)
        p[i] = 0.0
        total = p.sum()
        entropy = np.log(total) + beta * (d * p).sum() / total
        gap = entropy - target
        if abs(gap) < 1e-10:
            break
        if gap > 0:
            lo = beta
            beta = 2.0 * beta if hi == np.inf else 0.5 * (beta + hi)
        else:
            hi = beta
            beta = 0.5 * (beta + lo)
    return p / total


def f(Y, X, rate):
    n = X.shape[0]
    D = ((X[:, None, :] - X[None, :, :]) ** 2).sum(-1)
    P = np.stack([row_affinities(D[i], i, 2.5) for i in range(n)])
    P = (P + P.T) / (2 * n)
    np.fill_diagonal(P, 0.0)
    loss = 0.0
    for step in range(2):
        Q = 1.0 / (1.0 + ((Y[:, None] - Y[None]) ** 2).sum(axis=2))
        Q = Q * (1.0 - np.eye(n))
        W = (P - Q / Q.sum()) * Q
        grad = 4.0 * (np.diag(W.sum(axis=1)) - W) @ Y
        Y = Y - rate * grad
    Qn = Q / Q.sum()
    for i in range(n):
        for j in range(n):
            if i != j:
                loss += P[i, j] * np.log(P[i, j] / Qn[i, j])
    return loss


rng = np.random.default_rng(3)
ARGS = (rng.normal(size=(5, 2)), rng.normal(size=(5, 3)), 0.7)
WRT = (0, 2)
