"""Kalman filter of a constant-velocity target; the log-likelihood of the readings."""
import numpy as np


def f(z, q, r):
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q = q * np.array([[0.25, 0.5], [0.5, 1.0]])
    x = np.zeros(2)
    P = np.eye(2) * 10.0
    loglik = 0.0
    for k in range(len(z)):
        x = F @ x
        P = F @ P @ F.T + Q
        innovation = z[k] - H @ x
        S = H @ P @ H.T + r
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ innovation
        P = (np.eye(2) - K @ H) @ P
        loglik -= 0.5 * (np.log(2 * np.pi * S[0, 0]) + innovation[0] ** 2 / S[0, 0])
    return loglik


def ARGS():
    return np.array([0.1, 1.3, 1.9, 3.2, 4.1, 4.8]), 0.2, 0.5
