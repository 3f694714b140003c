"""See into the ground by sound: full-waveform inversion between two boreholes.

Sources in one borehole send pulses; receivers in the other and at the surface record them. The wave equation on a
grid, marched in time, predicts the records for a map of wave speeds. The gradient of the misfit with respect to the
speed of every cell is the adjoint of the time loop, and L-BFGS finds the map: two bodies that nobody has drilled
into.

Run it: `python examples/seismic.py`. It saves `examples/output/seismic.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from tapegen import differentiable

DEPTH, WIDTH = 44, 36  # grid points, 10 m apart
SPACING = 10.0
BACKGROUND = 2.0  # kilometres a second
DT = 0.0022  # seconds
STEPS = 190
FREQUENCY = 14.0  # hertz
SOURCES = 6
BORDER = 8  # grid points that damp the waves
NOISE = 0.01
ITERATIONS = 40
OUTPUT = pathlib.Path(__file__).parent / "output" / "seismic.png"


@differentiable(wrt="speed", signatures=["f8[:,::1], i8[:,::1], i8[:,::1], f8[::1], f8[:,::1], f8[:,:,::1]"])
def misfit(speed, sources, receivers, pulse, damping, measured):
    """Half the sum of squared differences of predicted and measured records."""
    total = 0.0
    for s in range(sources.shape[0]):
        predicted = shot(speed, sources[s], receivers, pulse, damping)
        total += 0.5 * np.sum((predicted - measured[s]) ** 2)
    return total


def shot(speed, source, receivers, pulse, damping):
    """Pressure at the receivers while one source sends its pulse: leapfrog steps of the wave equation."""
    factor = (1000.0 * speed[1:-1, 1:-1] * DT / SPACING) ** 2
    before, now = np.zeros(speed.shape), np.zeros(speed.shape)
    records = np.empty((pulse.size, receivers.shape[0]))
    for n in range(pulse.size):
        after = np.zeros(speed.shape)
        curvature = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4.0 * now[1:-1, 1:-1]
        after[1:-1, 1:-1] = damping * (2.0 * now[1:-1, 1:-1] - damping * before[1:-1, 1:-1] + factor * curvature)
        after[source[0], source[1]] += pulse[n]
        before, now = now, after
        for r in range(receivers.shape[0]):
            records[n, r] = now[receivers[r, 0], receivers[r, 1]]
    return records


def survey() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Places of sources and receivers, the pulse, and the damping of each inner cell."""
    edge = BORDER
    sources = [(z, edge) for z in np.linspace(edge, DEPTH - 1 - edge, SOURCES).astype(int)]
    receivers = [(z, WIDTH - 1 - edge) for z in range(edge, DEPTH - edge, 2)]
    receivers += [(edge, x) for x in range(edge + 2, WIDTH - edge, 2)]
    t = np.pi * FREQUENCY * (np.arange(STEPS) * DT - 1.2 / FREQUENCY)
    pulse = (1.0 - 2.0 * t**2) * np.exp(-(t**2))  # Ricker's wavelet
    z, x = np.mgrid[1 : DEPTH - 1, 1 : WIDTH - 1]
    inside = np.minimum(np.minimum(z, DEPTH - 1 - z), np.minimum(x, WIDTH - 1 - x))
    damping = np.exp(-((0.03 * np.maximum(0, BORDER - inside)) ** 2))
    return np.array(sources), np.array(receivers), pulse, damping


def ground() -> np.ndarray:
    """The true map: a slow lens above a fast one, in a ground that gets a little faster with depth."""
    z, x = np.mgrid[0:DEPTH, 0:WIDTH]
    speed = smooth_ground()
    speed -= 0.3 * (((z - 0.36 * DEPTH) / 4.0) ** 2 + ((x - 0.47 * WIDTH) / 5.0) ** 2 < 1.0)
    speed += 0.3 * (((z - 0.66 * DEPTH) / 4.0) ** 2 + ((x - 0.55 * WIDTH) / 6.0) ** 2 < 1.0)
    return speed


def smooth_ground() -> np.ndarray:
    """What is known beforehand."""
    return BACKGROUND + 0.3 * np.linspace(0.0, 1.0, DEPTH)[:, None] * np.ones(WIDTH)


def invert(data: tuple, start: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The map of the smallest misfit, within sensible speeds."""
    history: list[float] = []

    def objective(vector):
        value, gradient = misfit.value_and_grad(vector.reshape(start.shape), *data)
        history.append(value)
        return value, gradient.ravel()

    bounds = [(1.5, 2.8)] * start.size
    found = minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}
    )
    return found.x.reshape(start.shape), history


def plot(
    truth: np.ndarray, found: np.ndarray, gradient: np.ndarray, sources: np.ndarray, receivers: np.ndarray
) -> None:
    """The truth, the first gradient, and the map that was found."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.4), layout="constrained")
    extent = (0, WIDTH * SPACING, DEPTH * SPACING, 0)
    limit = np.abs(gradient).max()
    maps, titles = (truth, found, -gradient), ("true speeds", "found", "first gradient (downhill)")
    for axis, field, title, low, high in zip(axes, maps, titles, (1.7, 1.7, -limit), (2.6, 2.6, limit)):
        axis.imshow(field, extent=extent, cmap="RdBu_r", vmin=low, vmax=high)
        axis.plot(SPACING * sources[:, 1], SPACING * sources[:, 0], "*", color="white", mec="k", ms=9)
        axis.plot(SPACING * receivers[:, 1], SPACING * receivers[:, 0], "v", color="k", ms=3)
        axis.set_title(title)
        axis.set_xlabel("metres")
    figure.colorbar(axes[1].images[0], ax=axes[:2], label="km/s", shrink=0.8)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    truth, start = ground(), smooth_ground()
    sources, receivers, pulse, damping = survey()
    measured = np.stack([shot(truth, source, receivers, pulse, damping) for source in sources])
    noise = NOISE * np.abs(measured).max() * np.random.default_rng(6).standard_normal(measured.shape)
    measured += noise
    data = (sources, receivers, pulse, damping, measured)
    first = misfit.grad(start, *data)
    found, history = invert(data, start)

    inside = (slice(BORDER, -BORDER), slice(BORDER, -BORDER))
    left = float(np.linalg.norm((found - truth)[inside]) / np.linalg.norm((start - truth)[inside]))
    slow, fast = (round(0.36 * DEPTH), round(0.47 * WIDTH)), (round(0.66 * DEPTH), round(0.55 * WIDTH))
    print(f"{len(sources)} sources, {len(receivers)} receivers, {truth.size} speeds; {len(history)} gradients")
    print(f"misfit            {history[0]:.2f} -> {history[-1]:.2f}; noise alone {0.5 * np.sum(noise**2):.2f}")
    print(f"map               {100 * left:.0f} % of the error of the smooth ground is left")
    print(f"slow lens         {found[slow]:.2f} km/s (true {truth[slow]:.2f})")
    print(f"fast lens         {found[fast]:.2f} km/s (true {truth[fast]:.2f})")
    plot(truth, found, first, sources, receivers)
    print(f"saved             {OUTPUT}")
    return {"misfit": history[-1] / history[0], "map": left}


if __name__ == "__main__":
    main()
