"""Learn the equations of a motion from noisy measurements: a neural network as the right side of an ODE.

A pendulum with friction is released five times, and its angle and speed are measured. Nobody tells the program the
equation: a small network gives the rates, a Runge-Kutta loop integrates them, and the gradient of the misfit with
respect to the weights is that of the whole loop. Integrated from a start it has not seen, and four times as long, the
network swings as the pendulum does.

Run it: `python examples/neural_ode.py`. It saves `examples/output/neural_ode.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from tapegen import differentiable

HIDDEN = 12
STEPS = 40
STEP = 0.1
STARTS = np.array([[2.5, 0.0], [-1.0, 0.0], [0.5, 1.5], [1.8, -1.5], [-2.2, 1.0]])
NOISE = 0.02
ITERATIONS = 250
OUTPUT = pathlib.Path(__file__).parent / "output" / "neural_ode.png"


def pendulum(state):
    """Rates of angle and speed, a row for each pendulum."""
    return np.stack([state[:, 1], -np.sin(state[:, 0]) - 0.15 * state[:, 1]], axis=1)


def network(w, state):
    """The rates that the network believes in."""
    return np.tanh(state @ w["in"] + w["bias"]) @ w["out"]


def integrate(rates, state, steps):
    """States after each step of the classical Runge-Kutta method."""
    states = np.empty((steps, *state.shape))
    for i in range(steps):
        k1 = rates(state)
        k2 = rates(state + STEP / 2 * k1)
        k3 = rates(state + STEP / 2 * k2)
        k4 = rates(state + STEP * k3)
        state = state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states[i] = state
    return states


@differentiable
def misfit(w, starts, measured, decay):
    """Mean squared error, plus a penalty on large weights."""
    error = integrate(lambda state: network(w, state), starts, measured.shape[0]) - measured
    return np.mean(error**2) + decay * (np.sum(w["in"] ** 2) + np.sum(w["out"] ** 2))


def initial(rng: np.random.Generator) -> dict:
    """Random weights of a small network."""
    return {
        "in": rng.normal(size=(2, HIDDEN)) * 0.7,
        "bias": rng.normal(size=HIDDEN) * 0.5,
        "out": rng.normal(size=(HIDDEN, 2)) * 0.1,
    }


def flatten(w: dict) -> np.ndarray:
    """The weights as one vector."""
    return np.concatenate([part.ravel() for part in w.values()])


def unflatten(vector: np.ndarray, like: dict) -> dict:
    """The inverse of `flatten`."""
    ends = np.cumsum([part.size for part in like.values()])[:-1]
    return {name: v.reshape(part.shape) for (name, part), v in zip(like.items(), np.split(vector, ends))}


def train(w: dict, measured: np.ndarray) -> tuple[dict, list[float]]:
    """Fit the first quarter of the data, then half, then all: long integrations of bad rates lead nowhere."""
    history = []
    for steps in (STEPS // 4, STEPS // 2, STEPS):

        def objective(vector, steps=steps, like=w):
            value, gradient = misfit.value_and_grad(unflatten(vector, like), STARTS, measured[:steps], 1e-6)
            history.append(value)
            return value, flatten(gradient)

        found = minimize(objective, flatten(w), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
        w = unflatten(found.x, w)
    return w, history


def plot(w: dict, truth: np.ndarray, learned: np.ndarray, measured: np.ndarray) -> None:
    """The learned field of rates, and a swing that was not in the data."""
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
    angle, speed = np.meshgrid(np.linspace(-3, 3, 18), np.linspace(-2.6, 2.6, 14))
    field = network(w, np.stack([angle.ravel(), speed.ravel()], axis=1))
    axes[0].quiver(angle.ravel(), speed.ravel(), *field.T, color="0.6")
    for k in range(len(STARTS)):
        axes[0].plot(*measured[:, k].T, ".", ms=3)
    axes[0].set_xlabel("angle")
    axes[0].set_ylabel("speed")
    time = STEP * np.arange(1, len(truth) + 1)
    axes[1].plot(time, truth[:, 0, 0], color="k", lw=1.0, label="pendulum")
    axes[1].plot(time, learned[:, 0, 0], "--", color="C3", label="network")
    axes[1].axvspan(0, STEP * STEPS, color="0.92", label="length of the data")
    axes[1].set_xlabel("time")
    axes[1].set_ylabel("angle")
    axes[1].legend(frameon=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    rng = np.random.default_rng(0)
    measured = integrate(pendulum, STARTS, STEPS)
    measured += NOISE * rng.standard_normal(measured.shape)
    w, history = train(initial(rng), measured)

    unseen = np.array([[2.0, 0.5]])
    truth, learned = integrate(pendulum, unseen, 4 * STEPS), integrate(lambda s: network(w, s), unseen, 4 * STEPS)
    error = float(np.sqrt(np.mean((learned - truth) ** 2)))
    print(f"{flatten(w).size} weights, {measured.size} measurements, {len(history)} gradients")
    print(f"rms misfit        {np.sqrt(history[0]):.3f} -> {np.sqrt(history[-1]):.3f}, noise {NOISE}")
    print(f"unseen swing      error {error:.3f} over {4 * STEPS} steps, amplitude {np.abs(truth[:, 0, 0]).max():.1f}")
    plot(w, truth, learned, measured)
    print(f"saved             {OUTPUT}")
    return {"misfit": float(history[-1]), "error": error}


if __name__ == "__main__":
    main()
