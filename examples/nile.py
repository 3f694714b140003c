"""Estimate how much the flow of the Nile drifted, by the likelihood of a Kalman filter, with standard errors.

The yearly flow at Aswan, 1871-1970, is a level that wanders like a random walk, plus noise. The Kalman filter gives
the likelihood of the two variances; Newton's method climbs it with the gradient and the Hessian of the filter, and
the Hessian at the top gives the standard errors. Durbin and Koopman's textbook has 15,099 and 1,469 for this series.

Data: Nile flow as shipped with statsmodels (public domain).

Run it: `python examples/nile.py`. It saves `examples/output/nile.png`.
"""

from __future__ import annotations

import math
import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import nile

import tapegen as tg

OUTPUT = pathlib.Path(__file__).parent / "output" / "nile.png"


def negative_log_likelihood(p, flow):
    """Of the logarithms of both variances; the first observation starts the filter."""
    noise, drift = np.exp(p[0]), np.exp(p[1])
    level = flow[0]
    variance = noise
    total = 0.0
    for t in range(1, flow.size):
        variance = variance + drift  # predict
        expected = variance + noise
        error = flow[t] - level
        total += 0.5 * (math.log(2.0 * math.pi) + np.log(expected) + error * error / expected)
        gain = variance / expected  # update
        level = level + gain * error
        variance = variance * (1.0 - gain)
    return total


def filtered(p: np.ndarray, flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Level and its standard deviation, given all years (Rauch, Tung and Striebel's smoother)."""
    noise, drift = np.exp(p)
    level, variance = np.empty(flow.size), np.empty(flow.size)
    level[0], variance[0] = flow[0], noise
    for t in range(1, flow.size):
        gain = (variance[t - 1] + drift) / (variance[t - 1] + drift + noise)
        level[t] = level[t - 1] + gain * (flow[t] - level[t - 1])
        variance[t] = gain * noise
    for t in range(flow.size - 2, -1, -1):
        back = variance[t] / (variance[t] + drift)
        level[t] += back * (level[t + 1] - level[t])
        variance[t] += back**2 * (variance[t + 1] - variance[t] - drift)
    return level, np.sqrt(variance)


def climb(p: np.ndarray, flow: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Newton's method: the maximum, the Hessian there, and the number of steps."""
    gradient, hessian = tg.grad(negative_log_likelihood), tg.hessian(negative_log_likelihood)
    steps = 0
    move = np.ones(2)
    while np.linalg.norm(move) > 1e-9 and steps < 30:
        values, vectors = np.linalg.eigh(hessian(p, flow))
        # where the surface is not convex, the sizes of its curvatures still give a direction downhill
        move = vectors @ ((vectors.T @ gradient(p, flow)) / np.maximum(np.abs(values), 1e-3))
        p = p - move * min(1.0, 2.0 / float(np.linalg.norm(move)))
        steps += 1
    return p, hessian(p, flow), steps


def plot(years: np.ndarray, flow: np.ndarray, found: np.ndarray, covariance: np.ndarray) -> None:
    """The series with its level, and the likelihood around the maximum."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), width_ratios=(1.6, 1), layout="constrained")
    level, deviation = filtered(found, flow)
    axes[0].plot(years, flow, ".", color="0.5", label="measured")
    axes[0].plot(years, level, color="C0", label="level")
    axes[0].fill_between(years, level - 1.96 * deviation, level + 1.96 * deviation, alpha=0.2, label="95 %")
    axes[0].set_xlabel("year")
    axes[0].set_ylabel("flow, 10$^8$ m$^3$")
    axes[0].legend(frameon=False)
    width = 3.0 * np.sqrt(np.diag(covariance))
    a, b = (np.linspace(c - w, c + w, 40) for c, w in zip(found, width))
    surface = np.array([[negative_log_likelihood(np.array([x, y]), flow) for x in a] for y in b])
    axes[1].contourf(a, b, surface.min() - surface, levels=np.linspace(-8, 0, 17), cmap="viridis", extend="min")
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    ellipse = found[:, None] + 2.45 * np.linalg.cholesky(covariance) @ np.array([np.cos(angle), np.sin(angle)])
    axes[1].plot(*ellipse, color="white", label="95 %, from the Hessian")
    axes[1].set_xlabel("log variance of the noise")
    axes[1].set_ylabel("log variance of the drift")
    axes[1].legend(labelcolor="white", frameon=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    table = nile.load_pandas().data
    years, flow = table["year"].to_numpy(float), table["volume"].to_numpy(float)
    found, hessian, steps = climb(np.log([np.var(flow), np.var(flow)]), flow)
    covariance = np.linalg.inv(hessian)
    variances, errors = np.exp(found), np.exp(found) * np.sqrt(np.diag(covariance))
    print(f"{flow.size} years, {steps} steps of Newton's method")
    print(f"noise             variance {variances[0]:.0f} +- {errors[0]:.0f}")
    print(f"drift             variance {variances[1]:.0f} +- {errors[1]:.0f}")
    print(f"log-likelihood    {-negative_log_likelihood(found, flow):.2f}")
    level, deviation = filtered(found, flow)
    print(f"level in 1871     {level[0]:.0f} +- {deviation[0]:.0f}; in 1970 {level[-1]:.0f} +- {deviation[-1]:.0f}")
    plot(years, flow, found, covariance)
    print(f"saved             {OUTPUT}")
    return {"noise": variances[0], "drift": variances[1]}


if __name__ == "__main__":
    main()
