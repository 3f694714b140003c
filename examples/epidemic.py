"""Fit an epidemic model to daily case numbers, with uncertainties from the Hessian.

A population is susceptible, exposed, infectious or recovered; a loop of short time steps integrates the model. The
contact rate drops when measures come into force. The counts are Poisson variables; the parameters of the largest
likelihood are found by SciPy's trust-region method with gradients and Hessian-vector products, and the Hessian gives
their standard errors and the error band of the reproduction number.

Run it: `python examples/epidemic.py`. It saves `examples/output/epidemic.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import tapegen as tg

DAYS = 90
STEPS = 8  # a day
MEASURES = 35.0  # day on which contacts begin to drop
PEOPLE = 1e6
INCUBATION = 4.0  # days
REPORTED = 0.4  # share of the infections that are found
NAMES = ("contact rate before", "contact rate after", "days infectious", "exposed on day 0")
TRUE = np.log([0.55, 0.16, 5.0, 120.0])
START = np.log([0.4, 0.3, 7.0, 50.0])
OUTPUT = pathlib.Path(__file__).parent / "output" / "epidemic.png"


def contact_rate(p, day):
    """Contacts a day that would infect: a smooth step from before the measures to after them."""
    before, after = np.exp(p[0]), np.exp(p[1])
    return before + (after - before) / (1.0 + np.exp(-(day - MEASURES) / 2.0))


def expected_cases(p, days):
    """Reported cases of each day, by short steps of Euler's method."""
    recovery, h = np.exp(-p[2]), 1.0 / STEPS
    exposed = np.exp(p[3]) / PEOPLE
    susceptible, infectious = 1.0 - exposed, 0.0
    cases = np.empty(days)
    for day in range(days):
        new = 0.0
        for k in range(STEPS):
            infected = h * contact_rate(p, day + k * h) * susceptible * infectious
            onset = h * exposed / INCUBATION
            susceptible -= infected
            exposed += infected - onset
            infectious += onset - h * recovery * infectious
            new += onset
        cases[day] = REPORTED * PEOPLE * new
    return cases


def negative_log_likelihood(p, counts):
    """Of Poisson counts, without the part that does not depend on the parameters."""
    cases = expected_cases(p, counts.size)
    return np.sum(cases - counts * np.log(cases))


def plot(counts: np.ndarray, fitted: np.ndarray, band: np.ndarray, r: np.ndarray, r_band: np.ndarray) -> None:
    """Cases with the fit and its 95 % band, and the reproduction number."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    day = np.arange(counts.size)
    axes[0].plot(day, counts, ".", color="0.5", label="reported")
    axes[0].plot(day, fitted, color="C3", label="fitted")
    axes[0].fill_between(day, fitted - 1.96 * band, fitted + 1.96 * band, color="C3", alpha=0.3)
    axes[0].set_ylabel("cases a day")
    axes[0].legend(frameon=False)
    axes[1].plot(day, r, color="C0")
    axes[1].fill_between(day, r - 1.96 * r_band, r + 1.96 * r_band, alpha=0.3, label="95 %")
    axes[1].axhline(1.0, color="0.5", ls="--")
    axes[1].set_ylabel("infections caused by each case")
    axes[1].legend(frameon=False)
    for axis in axes:
        axis.set_xlabel("day")
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def reproduction(p, days):
    """How many people each infectious person infects, day by day, while nearly all are susceptible."""
    return contact_rate(p, np.arange(days)) * np.exp(p[2])


def main() -> dict[str, float]:
    counts = np.random.default_rng(3).poisson(expected_cases(TRUE, DAYS)).astype(float)
    found = minimize(
        tg.value_and_grad(negative_log_likelihood),
        START,
        args=(counts,),
        jac=True,
        hessp=lambda p, v, counts: tg.hvp(negative_log_likelihood, (p, counts), (v, None)),
        method="trust-ncg",
        options={"gtol": 1e-6, "maxiter": 100},
    )
    covariance = np.linalg.inv(tg.hessian(negative_log_likelihood)(found.x, counts))
    errors = np.sqrt(np.diag(covariance))
    print(f"{DAYS} days, {counts.sum():.0f} cases; {found.nit} iterations")
    for name, true, value, error in zip(NAMES, TRUE, found.x, errors):
        print(f"{name:20}{np.exp(value):8.3f} +- {np.exp(value) * error:.3f}  (true {np.exp(true):g})")

    def band(function):
        # the delta method: the covariance of the parameters, carried to the results by their Jacobian
        slope = tg.jacobian(function)(found.x, DAYS)
        return np.sqrt(np.einsum("ij,jk,ik->i", slope, covariance, slope))

    r, r_band = reproduction(found.x, DAYS), band(reproduction)
    print(f"reproduction number {r[0]:.2f} +- {r_band[0]:.2f} before, {r[-1]:.2f} +- {r_band[-1]:.2f} after")
    plot(counts, expected_cases(found.x, DAYS), band(expected_cases), r, r_band)
    print(f"saved {OUTPUT}")
    return {"worst": float(np.max(np.abs(found.x - TRUE) / errors)), "after": float(r[-1])}


if __name__ == "__main__":
    main()
