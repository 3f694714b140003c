"""Forecast sunspots with a Gaussian process whose hyperparameters maximize the likelihood.

The yearly number of sunspots rises and falls about every eleven years. A Gaussian process with a quasi-periodic
covariance says how years at a given distance resemble each other; its five hyperparameters (among them the period)
are found by the gradient of the marginal likelihood: that of a Cholesky factorization and triangular solves.

Data: yearly sunspot numbers, 1700-2008, as shipped with statsmodels (public domain).

Run it: `python examples/sunspots.py`. It saves `examples/output/sunspots.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from statsmodels.datasets import sunspots

from tapegen import differentiable

SINCE, UNTIL = 1850, 1990  # years that are fitted; those after them test the forecast
NAMES = ("amplitude", "memory, years", "period, years", "roughness in a period", "noise")
START = np.log([1.0, 20.0, 10.5, 1.0, 0.3])
OUTPUT = pathlib.Path(__file__).parent / "output" / "sunspots.png"


def covariance(p, a, b):
    """Between years a and b: a cosine-like wave that loses its phase over the `memory`."""
    amplitude, memory, period, rough = np.exp(p[0]), np.exp(p[1]), np.exp(p[2]), np.exp(p[3])
    apart = a[:, None] - b
    wave = np.sin(np.pi * apart / period) / rough
    return amplitude**2 * np.exp(-0.5 * (apart / memory) ** 2 - 2.0 * wave**2)


@differentiable
def negative_log_likelihood(p, years, y):
    """Of the hyperparameters (their logarithms), without a constant."""
    matrix = covariance(p, years, years) + np.exp(2.0 * p[4]) * np.eye(y.size)
    factor = np.linalg.cholesky(matrix)
    z = solve_triangular(factor, y, lower=True)
    return 0.5 * z @ z + np.sum(np.log(np.diag(factor)))


def predict(p: np.ndarray, years: np.ndarray, y: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of what will be measured."""
    noise = np.exp(2.0 * p[4])
    factor = np.linalg.cholesky(covariance(p, years, years) + noise * np.eye(y.size))
    cross = solve_triangular(factor, covariance(p, years, ahead), lower=True)
    mean = cross.T @ solve_triangular(factor, y, lower=True)
    variance = np.exp(2.0 * p[0]) + noise - np.sum(cross**2, axis=0)
    return mean, np.sqrt(variance)


def plot(
    years: np.ndarray, counts: np.ndarray, ahead: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """The series, and the forecast with its 90 % band."""
    figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
    axis.plot(years, counts, ".-", lw=0.6, color="0.5", label="observed")
    axis.plot(ahead, mean, color="C3", label="forecast")
    axis.fill_between(ahead, low, high, color="C3", alpha=0.2, label="90 %")
    axis.axvline(UNTIL, color="0.7", ls="--")
    axis.set_xlim(1900, ahead[-1])
    axis.set_xlabel("year")
    axis.set_ylabel("sunspots")
    axis.legend(frameon=False, ncols=3)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    table = sunspots.load_pandas().data
    years, counts = table["YEAR"].to_numpy(float), table["SUNACTIVITY"].to_numpy(float)
    fitted = (years >= SINCE) & (years < UNTIL)
    root = np.sqrt(counts)  # whose scatter is about the same at maxima and minima
    mean, scale = root[fitted].mean(), root[fitted].std()
    y = (root[fitted] - mean) / scale
    found = minimize(
        negative_log_likelihood.value_and_grad, START, args=(years[fitted], y), jac=True, method="L-BFGS-B",
        bounds=[(s - 2.0, s + 2.0) for s in START],
    )  # fmt: skip
    print(f"{y.size} years; {found.nfev} gradients")
    for name, value in zip(NAMES, np.exp(found.x)):
        print(f"{name:24}{value:.3f}")
    ahead = np.arange(UNTIL, years[-1] + 1.0)
    forecast, deviation = predict(found.x, years[fitted], y, ahead)
    low, middle, high = (
        (np.maximum(mean + scale * (forecast + k * deviation), 0.0)) ** 2 for k in (-1.645, 0.0, 1.645)
    )
    later = counts[years >= UNTIL]
    inside = float(np.mean((later >= low) & (later <= high)))
    error = float(np.sqrt(np.mean((middle - later) ** 2)))
    print(f"forecast of {later.size} years: error {error:.0f} (standard deviation of the counts {later.std():.0f}),")
    print(f"{100 * inside:.0f} % of the years within the 90 % band")
    plot(years, counts, ahead, middle, low, high)
    print(f"saved {OUTPUT}")
    return {"period": float(np.exp(found.x[2])), "inside": inside}


if __name__ == "__main__":
    main()
