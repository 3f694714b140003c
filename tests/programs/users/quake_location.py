"""Location of an earthquake from arrival times: damped Gauss-Newton with station corrections and outlier weights."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Station:
    name: str
    x: float
    y: float
    correction: float = 0.0


@dataclass
class Solution:
    position: np.ndarray
    origin: float
    residuals: list = field(default_factory=list)


STATIONS = [
    Station("ANA", 0.0, 1.0),
    Station("BOR", 12.0, -3.0, 0.05),
    Station("CEL", 4.0, 15.0, -0.02),
    Station("DUN", -9.0, 7.0),
    Station("ELM", 6.0, 6.0, 0.01),
]


def travel_time(pos, station, v0, gradient):
    dx, dy = pos[0] - station.x, pos[1] - station.y
    dist = np.sqrt(dx**2 + dy**2 + pos[2] ** 2)
    v = v0 + gradient * pos[2] / 2
    return dist / v + station.correction


def jacobian(pos, v0, gradient, h=1e-4):
    rows = []
    for st in STATIONS:
        row = [1.0]
        for k in range(3):
            shift = np.zeros(3)
            shift[k] = h
            row.append((travel_time(pos + shift, st, v0, gradient) - travel_time(pos - shift, st, v0, gradient)) / (2 * h))
        rows.append(row)
    return np.array(rows)


def locate(arrivals, v0, gradient, max_iter=8, damping=0.01):
    sol = Solution(np.array([3.0, 4.0, 6.0]), arrivals.min() - 1.0)
    for it in range(max_iter):
        res = np.array([t - sol.origin - travel_time(sol.position, s, v0, gradient) for t, s in zip(arrivals, STATIONS)])
        w = np.where(np.abs(res) > 0.5, 0.5 / np.abs(res), 1.0)
        J = jacobian(sol.position, v0, gradient)
        lhs = J.T @ (w[:, None] * J)
        lhs[np.diag_indices(4)] += damping
        step = np.linalg.solve(lhs, J.T @ (w * res))
        sol.origin += step[0]
        sol.position += step[1:]
        if sol.position[2] < 0.1:
            sol.position[2] = 0.1
        sol.residuals.append(float(np.sqrt(np.mean(res**2))))
        if it > 2 and np.linalg.norm(step) < 1e-7:
            break
    return sol


def f(arrivals, velocity):
    sol = locate(arrivals, velocity["v0"], velocity["gradient"])
    return sol.position[2] + 0.1 * sol.position[0] * sol.position[1] + sol.origin + 10 * sol.residuals[-1]


ARGS = (np.array([2.31, 3.02, 3.4, 3.5, 1.93]), {"v0": 5.5, "gradient": 0.04})
TOL = 1e-6
