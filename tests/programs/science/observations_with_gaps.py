"""A Kalman filter over observations with gaps: covariances updated in Joseph's form, a dataclass for the model."""

from dataclasses import dataclass

import numpy as np

@dataclass
class LinearGaussian:
    F: np.ndarray
    H: np.ndarray
    Q: np.ndarray
    R: np.ndarray

    @property
    def dim(self):
        return self.F.shape[0]

def symmetrize(P):
    return 0.5 * (P + P.T)

def kalman_step(model, m, P, y, *, joseph=True):
    m_pred = model.F @ m
    P_pred = model.F @ P @ model.F.T + model.Q
    S = model.H @ P_pred @ model.H.T + model.R
    K = np.linalg.solve(S.T, (P_pred @ model.H.T).T).T
    v = y - model.H @ m_pred
    m_new = m_pred + K @ v
    if joseph:
        A = np.eye(model.dim) - K @ model.H
        P_new = A @ P_pred @ A.T + K @ model.R @ K.T
    else:
        P_new = P_pred - K @ S @ K.T
    sign, logdet = np.linalg.slogdet(2 * np.pi * S)
    ll = -0.5 * (logdet + v @ np.linalg.solve(S, v))
    return m_new, symmetrize(P_new), ll

def f(theta, ys):
    dt = np.exp(theta[0])
    q = np.exp(theta[1])
    r = np.exp(theta[2])
    F = np.array([[1.0, dt], [0.0, 1.0]])
    Q = q * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    model = LinearGaussian(F=F, H=np.array([[1.0, 0.0]]), Q=Q, R=r * np.eye(1))
    m, P = np.zeros(2), 10.0 * np.eye(2)
    total = 0.0
    for k, y in enumerate(ys):
        if np.any(np.isnan(y)):
            m = model.F @ m
            P = model.F @ P @ model.F.T + model.Q
            continue
        m, P, ll = kalman_step(model, m, P, y, joseph=k % 2 == 0)
        total += ll
    return -total

WRT = (0,)
RNG = np.random.default_rng(1)
SEEN = RNG.normal(size=(6, 1))
SEEN[3] = np.nan
ARGS = (np.array([0.3, -1.0, 0.1]), SEEN)
