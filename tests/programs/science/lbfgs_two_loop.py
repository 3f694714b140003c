"""The two-loop recursion of L-BFGS with deque-like lists and a backtracking line search."""
import numpy as np

def objective(x, scale):
    return np.sum(scale * (x - 1.0) ** 2) + 0.1 * np.sum(x**4)

def slope(x, scale):
    return 2.0 * scale * (x - 1.0) + 0.4 * x**3

def direction(g, pairs):
    q = g.copy()
    alphas = []
    for s, y in reversed(pairs):
        rho = 1.0 / (y @ s)
        a = rho * (s @ q)
        q -= a * y
        alphas.append((a, rho))
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), (a, rho) in zip(pairs, reversed(alphas)):
        q += s * (a - rho * (y @ q))
    return -q

def f(x, scale, memory=2):
    pairs = []
    g = slope(x, scale)
    for it in range(4):
        d = direction(g, pairs)
        t = 1.0 if it else 0.1
        while objective(x + t * d, scale) > objective(x, scale) + 1e-4 * t * (g @ d):
            t *= 0.5
        new = x + t * d
        gn = slope(new, scale)
        pairs.append((new - x, gn - g))
        if len(pairs) > memory:
            pairs.pop(0)
        x, g = new, gn
    return objective(x, scale) + np.sum(x)

ARGS = (np.array([0.2, -0.5, 1.7]), np.array([1.0, 2.0, 0.5]))
