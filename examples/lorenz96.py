"""Find the state of a chaotic atmosphere from sparse observations: 4D-Var with Lorenz's model of 1996.

Forty variables on a circle of latitude obey a chaotic equation, in which errors double every two days. Every second
variable is observed, with noise, over two and a half days. The analysis is the initial state for which a forecast
fits the observations and a poor first guess best; its gradient is one backward sweep of the Runge-Kutta loop (the
adjoint model that weather services write by hand). A forecast from it stays close for days more than one from the
guess.

Run it: `python examples/lorenz96.py`. It saves `examples/output/lorenz96.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from tapegen import differentiable

SIZE = 40
FORCING = 8.0
STEP = 0.05  # six hours
WINDOW = 10  # steps with observations
FORECAST = 60  # steps
NOISE, GUESS = 0.3, 1.0  # standard deviations of observations and of the first guess
DAY = 4  # steps
OUTPUT = pathlib.Path(__file__).parent / "output" / "lorenz96.png"


def tendency(x):
    """Advection, damping and forcing; neighbours are found on the circle."""
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + FORCING


def forecast(x, steps):
    """States after 0, 1, ..., `steps` steps."""
    states = np.empty((steps + 1, x.size))
    states[0] = x
    for i in range(steps):
        k1 = tendency(x)
        k2 = tendency(x + STEP / 2 * k1)
        k3 = tendency(x + STEP / 2 * k2)
        k4 = tendency(x + STEP * k3)
        x = x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states[i + 1] = x
    return states


@differentiable
def cost(x, guess, observed):
    """Distance from the first guess and from the observations, in units of their errors."""
    misfit = forecast(x, observed.shape[0] - 1)[:, ::2] - observed
    return 0.5 * np.sum((x - guess) ** 2) / GUESS**2 + 0.5 * np.sum(misfit**2) / NOISE**2


def rms(difference: np.ndarray) -> np.ndarray:
    """Root mean square over the circle."""
    return np.sqrt(np.mean(difference**2, axis=-1))


def plot(truth: np.ndarray, forecasts: dict[str, np.ndarray], observed: np.ndarray) -> None:
    """The initial state, and how the errors of both forecasts grow."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), width_ratios=(1.3, 1), layout="constrained")
    axes[0].plot(truth[0], color="k", lw=1.0, label="truth")
    axes[0].plot(np.arange(0, SIZE, 2), observed[0], "o", ms=4, mfc="none", color="0.4", label="observed")
    for (name, states), colour in zip(forecasts.items(), ("C0", "C3")):
        axes[0].plot(states[0], color=colour, lw=1.0, ls="--" if colour == "C0" else "-", label=name)
        axes[1].semilogy(np.arange(len(states)) / DAY, rms(states - truth), color=colour, label=f"from the {name}")
    axes[0].set_xlabel("place on the circle")
    axes[0].set_ylabel("state at the start")
    axes[0].legend(frameon=False, ncols=2, fontsize=8)
    axes[1].axvspan(0, WINDOW / DAY, color="0.9", label="observed")
    axes[1].set_xlabel("day")
    axes[1].set_ylabel("error of the forecast")
    axes[1].legend(frameon=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    rng = np.random.default_rng(4)
    on_attractor = forecast(FORCING + 0.1 * rng.standard_normal(SIZE), 200)[-1]
    truth = forecast(on_attractor, FORECAST)
    guess = truth[0] + GUESS * rng.standard_normal(SIZE)
    observed = truth[: WINDOW + 1, ::2] + NOISE * rng.standard_normal((WINDOW + 1, SIZE // 2))

    found = minimize(
        cost.value_and_grad, guess, args=(guess, observed), jac=True, method="L-BFGS-B", options={"maxiter": 200}
    )
    forecasts = {"first guess": forecast(guess, FORECAST), "analysis": forecast(found.x, FORECAST)}
    errors = {name: rms(states - truth) for name, states in forecasts.items()}
    print(f"{SIZE} variables, {observed.size} observations of every second one; {found.nfev} gradients")
    print(f"cost              {cost(guess, guess, observed):.0f} -> {found.fun:.0f} (noise: {observed.size / 2:.0f})")
    for name, error in errors.items():
        useful = int(np.argmax(error > 2.0)) / DAY if (error > 2.0).any() else FORECAST / DAY
        print(
            f"{name:18}error {error[0]:.2f} at the start, {error[WINDOW]:.2f} after the window, good {useful:.1f} days"
        )
    plot(truth, forecasts, observed)
    print(f"saved             {OUTPUT}")
    return {name: float(error[WINDOW]) for name, error in errors.items()}


if __name__ == "__main__":
    main()
