"""Robertson's stiff kinetics by BDF2 with Newton's method and a hand-written Jacobian."""
import numpy as np


class Kinetics:
    def __init__(self, k):
        self.k = k

    def rate(self, y):
        k1, k2, k3 = self.k
        r1, r2, r3 = k1 * y[0], k2 * y[1] * y[2], k3 * y[1] ** 2
        return np.array([-r1 + r2, r1 - r2 - r3, r3])

    def jacobian(self, y):
        k1, k2, k3 = self.k
        J = np.zeros((3, 3))
        J[0] = [-k1, k2 * y[2], k2 * y[1]]
        J[1] = [k1, -k2 * y[2] - 2 * k3 * y[1], -k2 * y[1]]
        J[2, 1] = 2 * k3 * y[1]
        return J


def solve_stage(model, known, y, hg):
    for it in range(8):
        residual = y - hg * model.rate(y) - known
        dy = np.linalg.solve(np.eye(3) - hg * model.jacobian(y), -residual)
        y = y + dy
        if np.linalg.norm(dy) < 1e-13:
            break
    else:
        raise RuntimeError(f"Newton stuck at {it}")
    return y


def f(k, y0):
    model = Kinetics(k)
    h = 0.05
    ys = [y0]
    ys.append(solve_stage(model, y0, y0, h))
    for n in range(6):
        known = (4.0 * ys[-1] - ys[-2]) / 3.0
        ys.append(solve_stage(model, known, ys[-1], 2.0 * h / 3.0))
    total = 0.0
    for y in ys:
        total += y[1] * 1e2
    return total + ys[-1][2]


ARGS = (np.array([0.5, 8.0, 20.0]), np.array([1.0, 0.02, 0.0]))
