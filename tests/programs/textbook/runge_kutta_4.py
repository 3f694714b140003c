"""Classical Runge-Kutta with a right-hand side passed in."""
import numpy as np


def rk4(rhs, y, t, dt, *params):
    k1 = rhs(t, y, *params)
    k2 = rhs(t + dt / 2, y + dt / 2 * k1, *params)
    k3 = rhs(t + dt / 2, y + dt / 2 * k2, *params)
    k4 = rhs(t + dt, y + dt * k3, *params)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def van_der_pol(t, y, mu, force):
    return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0] + force * np.cos(t)])


def f(y0, mu, force):
    y = y0
    t = 0.0
    dt = 0.1
    trajectory = np.zeros((21, 2))
    trajectory[0] = y
    for n in range(20):
        y = rk4(van_der_pol, y, t, dt, mu, force)
        t += dt
        trajectory[n + 1] = y
    return np.sum(trajectory[:, 0] ** 2) * dt


def ARGS():
    return np.array([0.8, -0.2]), 1.2, 0.3
