"""AC power flow on a small grid: Newton-Raphson in polar form with complex admittances."""
import numpy as np


def f(load, reactance):
    lines = [(0, 1, reactance), (1, 2, 0.2), (0, 2, 0.25)]
    n = 3
    G, B = np.zeros((n, n)), np.zeros((n, n))
    for i, j, x in lines:
        y = 1.0 / complex(0.02, x)
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            G[a, b] += sign * y.real
            B[a, b] += sign * y.imag
    P = np.array([0.0, -load[0], -load[1]])
    Q = np.array([0.0, -load[2], -load[3]])
    theta, V = np.zeros(n), np.ones(n)

    def injections(theta, V):
        d = theta[:, None] - theta[None, :]
        p = V * ((G * np.cos(d) + B * np.sin(d)) @ V)
        q = V * ((G * np.sin(d) - B * np.cos(d)) @ V)
        return p, q

    for trip in range(10):
        p, q = injections(theta, V)
        mismatch = np.concatenate([(P - p)[1:], (Q - q)[1:]])
        if np.abs(mismatch).max() < 1e-12:
            break
        J = np.zeros((4, 4))
        for i in range(1, n):
            for j in range(1, n):
                t = theta[i] - theta[j]
                s, c = np.sin(t), np.cos(t)
                if i == j:
                    J[i - 1, j - 1] = -q[i] - B[i, i] * V[i] ** 2
                    J[i - 1, j + 1] = p[i] / V[i] + G[i, i] * V[i]
                    J[i + 1, j - 1] = p[i] - G[i, i] * V[i] ** 2
                    J[i + 1, j + 1] = q[i] / V[i] - B[i, i] * V[i]
                else:
                    J[i - 1, j - 1] = V[i] * V[j] * (G[i, j] * s - B[i, j] * c)
                    J[i - 1, j + 1] = V[i] * (G[i, j] * c + B[i, j] * s)
                    J[i + 1, j - 1] = -V[i] * V[j] * (G[i, j] * c + B[i, j] * s)
                    J[i + 1, j + 1] = V[i] * (G[i, j] * s - B[i, j] * c)
        step = np.linalg.solve(J, mismatch)
        theta[1:] += step[:2]
        V[1:] += step[2:]
    p, q = injections(theta, V)
    return p[0] + 0.5 * V[2] - theta[1]


ARGS = (np.array([0.5, 0.3, 0.2, 0.1]), 0.15)
