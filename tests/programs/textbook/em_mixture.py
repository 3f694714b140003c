"""Two EM steps for a mixture of Gaussians in one dimension."""
import numpy as np


def normal_pdf(x, mu, sigma):
    return np.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))


def f(x, mu, sigma, weight):
    K = len(mu)
    resp = np.zeros((len(x), K))
    for step in range(2):
        for k in range(K):
            resp[:, k] = weight[k] * normal_pdf(x, mu[k], sigma[k])
        total = resp.sum(axis=1)
        resp /= total[:, np.newaxis]
        nk = resp.sum(axis=0)
        for k in range(K):
            mu[k] = np.sum(resp[:, k] * x) / nk[k]
            sigma[k] = np.sqrt(np.sum(resp[:, k] * (x - mu[k]) ** 2) / nk[k])
            weight[k] = nk[k] / len(x)
    return np.sum(np.log(total)) + mu[0] * mu[1]


def ARGS():
    x = np.array([-1.2, -0.8, -0.3, 0.9, 1.4, 1.1, 2.0])
    return x, np.array([-0.7, 1.2]), np.array([0.8, 0.6]), np.array([0.5, 0.5])
