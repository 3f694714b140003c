"""Fit a spectrum of overlapping lines to photon counts, with uncertainties from the Hessian of the likelihood.

Three lines of Voigt's profile stand on a sloping background, two of them closer than their width. The counts are
Poisson variables. The parameters of the largest likelihood come from the gradient, their covariance from the Hessian;
the covariance is carried to the fitted curve, and to a quantity that is computed from several parameters (a ratio of
line strengths). A hundred repeated experiments test whether the error bars are honest.

Run it: `python examples/spectrum.py`. It saves `examples/output/spectrum.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import tapegen as tg

TRUE = {
    "height": np.array([420.0, 300.0, 160.0]),
    "centre": np.array([3.0, 3.9, 7.0]),
    "width": 0.35,
    "mixing": 0.4,
    "background": np.array([30.0, -1.5]),
}
START = {
    "height": np.array([350.0, 350.0, 100.0]),
    "centre": np.array([2.8, 4.1, 7.1]),
    "width": 0.5,
    "mixing": 0.5,
    "background": np.array([20.0, 0.0]),
}
CHANNELS = 200
EXPERIMENTS = 100
OUTPUT = pathlib.Path(__file__).parent / "output" / "spectrum.png"


def spectrum(p, x):
    """Expected counts: lines between a Gaussian and a Lorentzian shape, and a straight background."""
    total = p["background"][0] + p["background"][1] * x
    for k in range(p["height"].size):
        z = (x - p["centre"][k]) / p["width"]
        total = total + p["height"][k] * (
            p["mixing"] / (1.0 + z**2) + (1.0 - p["mixing"]) * np.exp(-np.log(2.0) * z**2)
        )
    return total


def unpack(v):
    """The parameters by name, from a vector in units that suit the optimizer."""
    return {
        "height": 100.0 * v[0:3],
        "centre": v[3:6],
        "width": v[6],
        "mixing": v[7],
        "background": np.array([10.0 * v[8], v[9]]),
    }


def pack(p: dict) -> np.ndarray:
    """The inverse of `unpack`."""
    parts = (p["height"] / 100.0, p["centre"], [p["width"], p["mixing"]], p["background"] / [10.0, 1.0])
    return np.concatenate(parts)


def negative_log_likelihood(v, x, counts):
    """Of Poisson counts, without the part that does not depend on the parameters."""
    expected = np.maximum(spectrum(unpack(v), x), 1e-3)
    return np.sum(expected - counts * np.log(expected))


def strength_ratio(v):
    """How much stronger the first line is than the second."""
    return v[0] / v[1]


def fit(x: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The estimate and its covariance matrix."""
    hessian = tg.hessian(negative_log_likelihood)
    found = minimize(
        tg.value_and_grad(negative_log_likelihood), pack(START), args=(x, counts), jac=True, hess=hessian,
        method="trust-exact"
    )  # fmt: skip
    return found.x, np.linalg.inv(hessian(found.x, x, counts))


def plot(x: np.ndarray, counts: np.ndarray, v: np.ndarray, covariance: np.ndarray, pulls: np.ndarray) -> None:
    """Counts and fit, the lines, and how errors of many experiments compare with their error bars."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), width_ratios=(1.7, 1), layout="constrained")
    p, fitted = unpack(v), spectrum(unpack(v), x)
    slope = tg.jacobian(lambda v: spectrum(unpack(v), x))(v)
    band = 1.96 * np.sqrt(np.einsum("ij,jk,ik->i", slope, covariance, slope))
    axes[0].plot(x, counts, ".", ms=4, color="0.5", label="counts")
    axes[0].plot(x, fitted, color="C3", label="fit")
    axes[0].fill_between(x, fitted - band, fitted + band, color="C3", alpha=0.3)
    for k in range(3):
        line = {**p, "height": np.where(np.arange(3) == k, p["height"], 0.0)}
        axes[0].plot(x, spectrum(line, x), lw=0.8, ls="--", color=f"C{k}")
    axes[0].set_xlabel("energy")
    axes[0].set_ylabel("counts in a channel")
    axes[0].legend(frameon=False)
    z = np.linspace(-4, 4, 100)
    axes[1].hist(pulls, bins=25, range=(-4, 4), density=True, color="0.75", label=f"{EXPERIMENTS} experiments")
    axes[1].plot(z, np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi), color="C0", label="normal distribution")
    axes[1].set_xlabel("error / error bar")
    axes[1].set_ylim(0.0, 0.52)
    axes[1].legend(frameon=False, loc="upper right")
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    rng = np.random.default_rng(8)
    x = np.linspace(0.0, 10.0, CHANNELS)
    truth = pack(TRUE)
    counts = rng.poisson(spectrum(TRUE, x)).astype(float)
    v, covariance = fit(x, counts)
    errors = np.sqrt(np.diag(covariance))
    names = [
        "height 1",
        "height 2",
        "height 3",
        "centre 1",
        "centre 2",
        "centre 3",
        "width",
        "mixing",
        "background",
        "slope",
    ]
    unit = np.array([100.0] * 3 + [1.0] * 5 + [10.0, 1.0])
    for name, value, error, true in zip(names, v * unit, errors * unit, truth * unit):
        print(f"{name:12}{value:9.3f} +- {error:.3f}  (true {true:g})")
    slope = tg.grad(strength_ratio)(v)
    error = np.sqrt(slope @ covariance @ slope)
    print(f"ratio 1 : 2 {strength_ratio(v):9.3f} +- {error:.3f}  (true {strength_ratio(truth):g})")

    pulls = []
    for _ in range(EXPERIMENTS):
        again, spread = fit(x, rng.poisson(spectrum(TRUE, x)).astype(float))
        pulls.append((again - truth) / np.sqrt(np.diag(spread)))
    pulls = np.array(pulls).ravel()
    inside = float(np.mean(np.abs(pulls) < 1.96))
    print(f"{EXPERIMENTS} experiments: {100 * inside:.1f} % of the true values within the 95 % intervals")
    plot(x, counts, v, covariance, pulls)
    print(f"saved {OUTPUT}")
    return {"worst": float(np.max(np.abs(v - truth) / errors)), "inside": inside}


if __name__ == "__main__":
    main()
