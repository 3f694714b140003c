"""Fit a model of the carbon cycle to the weekly record of carbon dioxide on Mauna Loa, and forecast eleven years.

The air gains the carbon that people burn, and some from cleared forests; it loses to oceans and land in proportion to
the excess over the level before industry, and gets a part of that back as they fill up; plants breathe in and out with
the seasons, more strongly as the air gets richer.  The constants of these differential equations are fitted to the
measurements of 1958-1990 (some weeks are missing), by a Runge-Kutta loop, its gradient and SciPy's optimizer.  Then the
years 1991-2001 test what the model says about them.

Data: Keeling and Whorf, Scripps Institution of Oceanography, as shipped with statsmodels (public domain); carbon burned
after Boden, Marland and Andres, Carbon Dioxide Information Analysis Center; cleared forests add about 1.4 Gt a year.

Run it: `python examples/carbon.py`.  It saves `examples/output/carbon.png`.
"""

from __future__ import annotations

import math
import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from statsmodels.datasets import co2
from tqdm import tqdm

from tapegen import differentiable

BEFORE_INDUSTRY = 280.0  # parts per million
FIT_UNTIL = 1991.0
GIGATONNES = 2.124  # of carbon in the air for each part per million
BURNED = {  # gigatonnes of carbon a year
    1955: 2.04, 1960: 2.57, 1965: 3.13, 1970: 4.05, 1975: 4.60, 1980: 5.32,
    1985: 5.44, 1990: 6.13, 1995: 6.40, 2000: 6.73, 2005: 7.97,
}  # fmt: skip
CLEARED = 1.4  # gigatonnes of carbon a year
OUTPUT = pathlib.Path(__file__).parent / "output" / "carbon.png"


def rate(t, state, emitted, p):
    """How fast the air's concentration and the store of oceans and land change, in parts per million and year."""
    air, store = state
    uptake = p["uptake"] * (air - BEFORE_INDUSTRY) - p["release"] * store
    season = 0.0
    for k in range(2):
        angle = 2.0 * math.pi * (k + 1) * t
        season += p["season"][k, 0] * math.cos(angle) + p["season"][k, 1] * math.sin(angle)
    season *= 1.0 + p["enrichment"] * (air / BEFORE_INDUSTRY - 1.0)
    return np.array([emitted / GIGATONNES - uptake + season, uptake])


def integrate(p, times, emitted):
    """The concentration at each time, by the classical Runge-Kutta method, one step from each time to the next.

    The store counts from the first of the times.  `emitted` has three entries a step: at its start, middle and end.
    """
    air = np.empty(times.size)
    air[0] = p["start"]
    state = np.array([p["start"], 0.0])
    for i in range(times.size - 1):
        t = times[i]
        h = times[i + 1] - t
        k1 = rate(t, state, emitted[i, 0], p)
        k2 = rate(t + h / 2, state + h / 2 * k1, emitted[i, 1], p)
        k3 = rate(t + h / 2, state + h / 2 * k2, emitted[i, 1], p)
        k4 = rate(t + h, state + h * k3, emitted[i, 2], p)
        state += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        air[i + 1] = state[0]
    return air


MODEL = "{'start': f8, 'uptake': f8, 'release': f8, 'enrichment': f8, 'season': f8[:,::1]}"


@differentiable(signatures=[f"{MODEL}, f8[::1], f8[:,::1], f8[::1]"])
def misfit(p, times, emitted, measured):
    """Mean squared error over the weeks that were measured."""
    air = integrate(p, times, emitted)
    total = 0.0
    count = 0
    for i in range(times.size):
        if not np.isnan(measured[i]):
            total += (air[i] - measured[i]) ** 2
            count += 1
    return total / count


def record() -> tuple[np.ndarray, np.ndarray]:
    """Times as decimal years, and parts per million with NaN for missing weeks."""
    table = co2.load_pandas().data
    start_of_year = table.index.year
    times = start_of_year + (table.index.day_of_year - 1) / 365.25
    return np.asarray(times, dtype=float), np.asarray(table["co2"], dtype=float)


def emissions(times: np.ndarray) -> np.ndarray:
    """Gigatonnes of carbon a year, at the start, middle and end of each step."""
    stages = np.column_stack([times[:-1], 0.5 * (times[:-1] + times[1:]), times[1:]])
    return np.interp(stages, list(BURNED), list(BURNED.values())) + CLEARED


# a first guess, and for each constant a step that the optimizer may think of as one
START = {
    "start": 316.0,
    "uptake": 0.02,
    "release": 0.0,
    "enrichment": 0.0,
    "season": np.zeros((2, 2)),
}
UNIT = {
    "start": 0.5,
    "uptake": 0.003,
    "release": 0.01,
    "enrichment": 0.5,
    "season": np.full((2, 2), 3.0),
}


def flatten(p: dict) -> np.ndarray:
    """The constants as one vector, in the optimizer's units."""
    return np.concatenate([np.ravel(p[name] / UNIT[name]) for name in START])


def unflatten(vector: np.ndarray) -> dict:
    """The inverse of `flatten`."""
    p: dict = {}
    for name, unit in UNIT.items():
        size = np.size(unit)
        part, vector = vector[:size], vector[size:]
        p[name] = part.reshape(np.shape(unit)) * unit if size > 1 else float(part[0] * unit)
    return p


def fit(times: np.ndarray, emitted: np.ndarray, measured: np.ndarray) -> tuple[dict, int]:
    """Constants of the smallest misfit, and how many gradients it took."""
    evaluations = 0

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        value, gradient = misfit.value_and_grad(unflatten(vector), times, emitted, measured)
        # the gradient is a dict like its source; one unit of the optimizer is `UNIT`
        return value, np.concatenate([np.ravel(gradient[name] * UNIT[name]) for name in START])

    with tqdm(desc="fitting", unit="iteration", mininterval=0.5) as bar:

        def advance(intermediate_result) -> None:
            bar.set_postfix_str(f"rms {math.sqrt(intermediate_result.fun):.3f} ppm", refresh=False)
            bar.update()

        found = minimize(
            objective,
            flatten(START),
            jac=True,
            method="L-BFGS-B",
            callback=advance,
            options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9},
        )
    return unflatten(found.x), evaluations


def rms(error: np.ndarray) -> float:
    """Root of the mean square of what is there."""
    return float(np.sqrt(np.nanmean(error**2)))


def airborne(model: np.ndarray, emitted: np.ndarray, times: np.ndarray) -> float:
    """The part of the emissions that the air kept, over whole years."""
    years = int(times[-1] - times[0])
    end = np.searchsorted(times, times[0] + years)
    total = np.sum(emitted[:end, 1] * np.diff(times[: end + 1]))
    return (model[end] - model[0]) * GIGATONNES / total


def plot(times: np.ndarray, measured: np.ndarray, model: np.ndarray) -> None:
    """The record and the model, and a closer look at the forecast."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained", width_ratios=(1.3, 1))
    for axis, since in zip(axes, (times[0], 1988.0)):
        there = times >= since
        axis.plot(times[there], measured[there], ".", ms=2.5, color="0.55", label="measured, weekly")
        for part, colour, label in ((times < FIT_UNTIL, "C0", "fitted"), (times >= FIT_UNTIL, "C3", "forecast")):
            axis.plot(times[there & part], model[there & part], color=colour, lw=1.2, label=label)
        axis.set_xlabel("year")
    axes[0].set_ylabel("carbon dioxide, parts per million")
    axes[0].legend(frameon=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> None:
    times, measured = record()
    known = times < FIT_UNTIL
    print(f"{times.size} weeks, {np.isnan(measured).sum()} of them missing; fitting those before {FIT_UNTIL:.0f}")

    emitted = emissions(times)
    p, evaluations = fit(times[known], emitted[: known.sum() - 1], measured[known])

    model = integrate(p, times, emitted)
    error = model - measured
    swing = 10.0 / (BEFORE_INDUSTRY / p["enrichment"] + 320.0 - BEFORE_INDUSTRY)
    print(
        f"error             {rms(error[known]):.2f} ppm where fitted, {rms(error[~known]):.2f} ppm in the years after"
    )
    print(f"gradients         {evaluations} of a loop of {known.sum() - 1} Runge-Kutta steps")
    print(f"uptake            {100 * p['uptake']:.1f} % of the excess a year by oceans and land")
    print(f"release           {100 * p['release']:.1f} % a year of what they took up since {times[0]:.0f}")
    print(f"stays in the air  {100 * airborne(model[known], emitted, times[known]):.0f} % of what was emitted")
    print(f"seasons           their swing grows by {100 * swing:.0f} % for each 10 ppm")
    plot(times, measured, model)
    print(f"saved             {OUTPUT}")


if __name__ == "__main__":
    main()
