"""Recover how hot a plate was at the start, and how well it conducts, from noisy readings of a few sensors.

A square plate with cold edges starts with a temperature that nobody measured.  Sixty-four sensors inside it are read
twenty times while it cools.  The simulation below marches the temperature in place; its gradient, with respect to the
1,444 unknown temperatures and the conductivity at once, costs a few simulations, and SciPy's optimizer does the rest.

Run it: `python examples/heat.py`.  It saves `examples/output/heat.png`.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

from tapegen import differentiable

SIZE = 40  # grid points along each side
READINGS = 20  # how often each sensor is read
STEPS = 6  # time steps between readings
NOISE = 0.1  # standard deviation of a reading, in degrees; the plate starts at up to 10
TRUE_CONDUCTIVITY = 0.18
SMOOTHNESS = 0.1  # how strongly the fit prefers a start without kinks
UNIT = 1.0 / 30.0  # one unit of conductivity for the optimizer: about as influential as one degree somewhere
OUTPUT = pathlib.Path(__file__).parent / "output" / "heat.png"


def march(u0, k, cap):
    """Let heat trickle along a rod until its energy passes a cap: a small function whose derivative is easy to read."""
    u = u0.copy()
    energy = 0.0
    i = 1
    while i < u.size and energy < cap:
        r = u[i - 1] - u[i]
        if r > 0.0:
            u[i] = u[i] + k * r
        energy = energy + u[i] * u[i]
        i = i + 1
    return energy


def curvature(u):
    """How much warmer the neighbours of each inner point are than the point itself."""
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]


def simulate(u0, conductivity, rows, cols):
    """What the sensors would read: one row for each reading."""
    u = u0.copy()
    predicted = np.empty((READINGS, rows.size))
    for n in range(READINGS):
        for _ in range(STEPS):
            u[1:-1, 1:-1] += conductivity * curvature(u)  # in place; the edges stay cold
        for s in range(rows.size):
            predicted[n, s] = u[rows[s], cols[s]]
    return predicted


@differentiable(wrt=("u0", "conductivity"), signatures=["f8[:,::1], f8, i8[::1], i8[::1], f8[:,::1], f8"])
def misfit(u0, conductivity, rows, cols, readings, smoothness):
    """Squared errors of the predictions in units of the noise, plus a penalty on kinks of the starting field."""
    error = (simulate(u0, conductivity, rows, cols) - readings) / NOISE
    return 0.5 * np.sum(error * error) + smoothness * np.sum(curvature(u0) ** 2)


def true_start() -> np.ndarray:
    """Two warm spots and a warm bar."""
    y, x = np.mgrid[0 : 1 : SIZE * 1j, 0 : 1 : SIZE * 1j]
    warm = 10.0 * np.exp(-((x - 0.3) ** 2 + (y - 0.35) ** 2) / 0.012)
    warm += 7.0 * np.exp(-((x - 0.7) ** 2 + (y - 0.65) ** 2) / 0.02)
    warm += 5.0 * np.exp(-(((x - 0.72) / 0.16) ** 4) - ((y - 0.22) / 0.05) ** 4)
    warm[[0, -1]] = 0.0
    warm[:, [0, -1]] = 0.0
    return warm


def recover(rows: np.ndarray, cols: np.ndarray, readings: np.ndarray) -> tuple[np.ndarray, float, list[float]]:
    """Minimize the misfit over starting temperature and conductivity, beginning with a cold plate."""
    history: list[float] = []
    inside = (slice(1, -1), slice(1, -1))
    unknowns = (SIZE - 2) ** 2

    def unpack(p: np.ndarray) -> tuple[np.ndarray, float]:
        u0 = np.zeros((SIZE, SIZE))
        u0[inside] = p[:unknowns].reshape(SIZE - 2, SIZE - 2)
        return u0, float(p[unknowns]) * UNIT

    def objective(p: np.ndarray) -> tuple[float, np.ndarray]:
        u0, conductivity = unpack(p)
        value, (u0_bar, k_bar) = misfit.value_and_grad(u0, conductivity, rows, cols, readings, SMOOTHNESS)
        history.append(value)
        return value, np.append(u0_bar[inside], k_bar * UNIT)

    start = np.append(np.zeros(unknowns), 0.1 / UNIT)
    bounds = [(0.0, None)] * unknowns + [(0.01 / UNIT, 0.24 / UNIT)]
    with tqdm(total=200, desc="fitting", unit="iteration", mininterval=0.5) as bar:
        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=lambda intermediate_result: advance(bar, intermediate_result.fun),
            options={"maxiter": 200, "maxcor": 30, "ftol": 1e-10},
        )
    u0, conductivity = unpack(found.x)
    return u0, conductivity, history


def advance(bar: tqdm, misfit_now: float) -> None:
    """Show one more iteration."""
    bar.set_postfix_str(f"misfit {misfit_now:.1f}", refresh=False)
    bar.update()


def time_of(call: Callable[[], object]) -> float:
    """Seconds of the fastest of five calls."""
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def plot(truth: np.ndarray, found: np.ndarray, rows: np.ndarray, cols: np.ndarray, history: list[float]) -> None:
    """Truth, recovery and the course of the fit, side by side."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), width_ratios=(1, 1, 0.9), layout="constrained")
    for axis, field, title in zip(axes, (truth, found), ("true start", "recovered from sensors"), strict=False):
        image = axis.imshow(field, origin="lower", cmap="inferno", vmin=0.0, vmax=truth.max())
        axis.plot(cols, rows, "o", mfc="none", mec="white", ms=4)
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.colorbar(image, ax=axes[:2], label="temperature, degrees", shrink=0.9)
    axes[2].semilogy(history)
    axes[2].axhline(0.5 * READINGS * rows.size, color="grey", ls="--", label="what noise alone would leave")
    axes[2].set_xlabel("evaluations of misfit and gradient")
    axes[2].set_ylabel("misfit")
    axes[2].legend(frameon=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> None:
    rng = np.random.default_rng(1)
    truth = true_start()
    y, x = np.mgrid[3 : SIZE - 3 : 8j, 3 : SIZE - 3 : 8j]
    rows, cols = (np.rint(p.ravel() + rng.uniform(-1.5, 1.5, p.size)).astype(int) for p in (y, x))
    readings = simulate(truth, TRUE_CONDUCTIVITY, rows, cols)
    readings += NOISE * rng.normal(size=readings.shape)
    unknowns = (SIZE - 2) ** 2 + 1
    print(f"{rows.size} sensors, {readings.size} readings, {unknowns} unknowns")

    found, conductivity, history = recover(rows, cols, readings)

    error = np.linalg.norm(found - truth) / np.linalg.norm(truth)
    data = (found, conductivity, rows, cols, readings, SMOOTHNESS)
    misfit.precompile(*data)  # a short fit may end before the machine code is there
    plain, both = (1e3 * time_of(lambda f=f: f(*data)) for f in (misfit.python, misfit.value_and_grad))
    print(f"misfit            {history[0]:.0f} -> {history[-1]:.0f} in {len(history)} evaluations")
    print(f"conductivity      {conductivity:.4f} (true {TRUE_CONDUCTIVITY})")
    print(f"starting field    relative error {100 * error:.0f} %, hottest {found.max():.1f} (true {truth.max():.1f})")
    print(f"one simulation    {plain:.2f} ms in NumPy; with its {unknowns} derivatives {both:.2f} ms")
    plot(truth, found, rows, cols, history)
    print(f"saved             {OUTPUT}")


if __name__ == "__main__":
    main()
