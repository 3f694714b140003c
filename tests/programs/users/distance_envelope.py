"""Felzenszwalb distance transform of samples by lower envelopes: integer places in lists, while loops, out=."""
import numpy as np

def dt1d(g):
    n = len(g)
    v = [0]
    z = [-np.inf, np.inf]
    for q in range(1, n):
        s = ((g[q] + q * q) - (g[v[-1]] + v[-1] ** 2)) / (2 * q - 2 * v[-1])
        while s <= z[-2]:
            v.pop()
            z.pop()
            s = ((g[q] + q * q) - (g[v[-1]] + v[-1] ** 2)) / (2 * q - 2 * v[-1])
        v.append(q)
        z[-1] = s
        z.append(np.inf)
    d = np.empty_like(g)
    k = 0
    for q in range(n):
        while z[k + 1] < q:
            k += 1
        d[q] = (q - v[k]) ** 2 + g[v[k]]
    return d

def f(img, power):
    d = np.power(img, power)
    for j in range(d.shape[1]):
        d[:, j] = dt1d(d[:, j])
    for i in range(d.shape[0]):
        d[i] = dt1d(d[i])
    out = np.empty_like(d)
    np.sqrt(d, out=out)
    return out.sum()

rng = np.random.default_rng(15)
ARGS = (rng.uniform(0.1, 9, (4, 5)), 1.3)
