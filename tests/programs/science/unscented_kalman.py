"""Unscented Kalman filter: bearings of a moving target; sigma points from a Cholesky factor."""
import numpy as np
from dataclasses import dataclass


@dataclass
class Gaussian:
    mean: np.ndarray
    cov: np.ndarray

    def points(self, kappa):
        n = self.mean.size
        L = np.linalg.cholesky((n + kappa) * self.cov)
        pts = [self.mean]
        for k in range(n):
            pts.append(self.mean + L[:, k])
            pts.append(self.mean - L[:, k])
        w = np.full(2 * n + 1, 0.5 / (n + kappa))
        w[0] = kappa / (n + kappa)
        return np.array(pts), w


def transform(g, func, noise, kappa=1.0):
    pts, w = g.points(kappa)
    images = np.array([func(p) for p in pts])
    mean = w @ images
    dev = images - mean
    cov = dev.T @ (w[:, None] * dev) + noise
    crossed = (pts - g.mean).T @ (w[:, None] * dev)
    return Gaussian(mean, cov), crossed


def f(q, r, start, bearings):
    g = Gaussian(start, np.eye(4) * 0.3)
    F = np.eye(4)
    F[0, 2] = F[1, 3] = 0.5
    like = 0.0
    for z in bearings:
        g, _ = transform(g, lambda x: F @ x, q * np.eye(4))
        seen, C = transform(g, lambda x: np.array([np.arctan2(x[1], x[0])]), r * np.eye(1))
        innovation = z - seen.mean
        K = C @ np.linalg.inv(seen.cov)
        g = Gaussian(g.mean + K @ innovation, g.cov - K @ seen.cov @ K.T)
        like -= 0.5 * (np.log(seen.cov[0, 0]) + innovation[0] ** 2 / seen.cov[0, 0])
    return like + g.mean[0]


ARGS = (0.05, 0.02, np.array([1.0, 0.5, 0.2, 0.3]), np.array([0.5, 0.55, 0.63, 0.66]))
