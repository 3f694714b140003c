"""Registration of two clouds of points: closest points, the best rotation by an SVD, again until nothing moves."""

import numpy as np


def best_fit(A, B):
    ca, cb = A.mean(axis=0), B.mean(axis=0)
    U, S, Vt = np.linalg.svd((A - ca).T @ (B - cb))
    D = np.eye(A.shape[1])
    D[-1, -1] = np.sign(np.linalg.det(Vt.T @ U.T))
    R = Vt.T @ D @ U.T
    return R, cb - R @ ca


def nearest(A, B):
    d2 = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=-1)
    return np.argmin(d2, axis=1), d2


def f(moving, fixed, tol=1e-9, most=6):
    A = moving.copy()
    before = np.inf
    for iteration in range(most):
        idx, d2 = nearest(A, fixed)
        R, t = best_fit(A, fixed[idx])
        A = A @ R.T + t
        error = np.mean(np.sqrt(d2[np.arange(len(A)), idx] + 1e-6))
        if abs(before - error) < tol:
            break
        before = error
    else:
        error = error + 0.001
    return error + np.trace(R)


ARGS = (
    np.array([[0.1, 0.0], [1.2, 0.1], [1.1, 0.9], [0.0, 1.2], [0.5, 2.0]]),
    np.array([[0.0, 0.2], [1.0, 0.3], [0.8, 1.3], [-0.2, 1.1], [0.1, 2.3], [3.0, 3.0]]),
)
