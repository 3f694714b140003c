"""Historical value at risk with linear interpolation between order statistics, and the mean beyond it."""
import numpy as np

def quantile(values, q):
    ordered = np.sort(values)
    h = (len(ordered) - 1) * q
    lo = int(np.floor(h))
    hi = min(lo + 1, len(ordered) - 1)
    return ordered[lo] + (h - lo) * (ordered[hi] - ordered[lo])

def f(weights, returns, level=0.25):
    loss = -(returns @ weights)
    var = quantile(loss, 1 - level)
    tail = loss[loss >= var]
    shortfall = tail.mean() if tail.size else var
    penalty = np.sum(np.clip(weights - 0.6, 0, None) ** 2) + (1 - weights.sum()) ** 2
    return shortfall + 10 * penalty + 0.1 * var

ARGS = (
    np.array([0.7, 0.2, 0.15]),
    np.random.default_rng(1).normal(0, 0.1, (9, 3)),
)
