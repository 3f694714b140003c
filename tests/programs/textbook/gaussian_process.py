"""Log marginal likelihood of Gaussian process regression, and its prediction."""
import numpy as np


def rbf(xa, xb, amplitude, length):
    sq = (xa[:, None, :] - xb[None, :, :]) / length
    return amplitude**2 * np.exp(-0.5 * np.sum(sq**2, axis=-1))


def f(params, x, y, x_new):
    amplitude, length, noise = params["amplitude"], params["length"], params["noise"]
    n = x.shape[0]
    k = rbf(x, x, amplitude, length) + noise**2 * np.eye(n)
    chol = np.linalg.cholesky(k)
    alpha = np.linalg.solve(chol.T, np.linalg.solve(chol, y))
    log_likelihood = -0.5 * y @ alpha - np.sum(np.log(np.diag(chol))) - 0.5 * n * np.log(2 * np.pi)
    mean = rbf(x_new, x, amplitude, length) @ alpha
    return {"log_likelihood": log_likelihood, "mean": mean}


def ARGS():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(6, 2))
    params = {"amplitude": 1.2, "length": np.array([0.8, 1.3]), "noise": 0.3}
    return params, x, np.sin(x[:, 0]) + 0.1 * x[:, 1], rng.normal(size=(3, 2))
