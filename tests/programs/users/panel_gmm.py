"""Two-step GMM for a small panel: within transformation by groups, instruments, a robust weight, a sorted trim."""

import numpy as np


def demean(x, groups):
    out = x.copy()
    for g in np.unique(groups):
        out[groups == g] -= x[groups == g].mean(axis=0)
    return out


def tsls(y, x, z, weight=None):
    if weight is None:
        weight = np.linalg.inv(z.T @ z)
    a = x.T @ z @ weight @ z.T
    return np.linalg.solve(a @ x, a @ y)


def f(y, x):
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    z = np.column_stack([x[:, 0] + 0.1 * x[:, 1], x[:, 1] ** 2, np.arange(8.0)])
    yd, xd, zd = (demean(v, groups) for v in (y, x, z))
    beta = tsls(yd, xd, zd)
    resid = yd - xd @ beta
    moments = zd * resid[:, np.newaxis]
    beta2 = tsls(yd, xd, zd, weight=np.linalg.inv(moments.T @ moments + 0.1 * np.eye(3)))
    trimmed = np.sort(np.abs(yd - xd @ beta2))[1:-1]
    return trimmed.mean() + beta2 @ beta2 + float(np.median(resid)) ** 2


_RNG = np.random.default_rng(5)
ARGS = (_RNG.normal(size=8), _RNG.normal(size=(8, 2)))
