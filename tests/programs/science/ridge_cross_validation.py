"""Ridge regression by folds; index lists say which rows are left out."""
import numpy as np

def fit(X, y, lam):
    p = X.shape[1]
    return np.linalg.solve(X.T @ X + lam * np.eye(p), X.T @ y)

def f(X, y, lam, folds=3):
    n = len(y)
    scores = np.zeros(folds)
    for k in range(folds):
        test = np.arange(n) % folds == k
        beta = fit(X[~test], y[~test], lam)
        error = y[test] - X[test] @ beta
        scores[k] = np.mean(error**2)
    return {"mean": scores.mean(), "spread": scores.std(), "all": scores}

def ARGS():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(9, 2))
    return X, X @ np.array([1.0, -1.0]) + 0.3 * rng.normal(size=9), 0.5
