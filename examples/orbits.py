"""Find a dance of three stars: a periodic orbit on which they chase each other along a figure of eight.

Three equal masses start from a rough guess. A third of the period later each should be where the one before it was,
with its velocity. This is a system of equations in the initial state and the period, whose residual is a loop of
leapfrog steps; its Jacobian is 13 tangents carried through the loop in one sweep. Chenciner and Montgomery proved in
2000 that the orbit exists.

Run it: `python examples/orbits.py`. It saves `examples/output/orbits.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import tapegen as tg

STEPS = 400  # in a third of the period
PERIOD = 6.3
# positions and velocities of three bodies: on a line, the one in the middle twice as fast, and against the others
START = np.array([[1.0, -0.25], [-1.0, 0.25], [0.0, 0.0], [0.5, 0.4], [0.5, 0.4], [-1.0, -0.8]])
OUTPUT = pathlib.Path(__file__).parent / "output" / "orbits.png"


def accelerations(x):
    """Newton's law for three equal masses."""
    a = np.zeros((3, 2))
    for i in range(3):
        for j in range(3):
            if i != j:
                apart = x[j] - x[i]
                a[i] += apart / (apart @ apart) ** 1.5
    return a


def path(state, period, steps):
    """Positions and velocities after each step of a third of the period, by a leapfrog scheme of fourth order."""
    x, v = state[:3].copy(), state[3:].copy()
    states = np.empty((steps + 1, 6, 2))
    states[0, :3] = x
    states[0, 3:] = v
    h = period / (3.0 * steps)
    cube = 2.0 ** (1.0 / 3.0)
    outer = h / (2.0 - cube)
    for i in range(steps):
        for k in range(3):  # Yoshida's composition
            part = -cube * outer if k == 1 else outer
            x += 0.5 * part * v
            v += part * accelerations(x)
            x += 0.5 * part * v
        states[i + 1, :3] = x
        states[i + 1, 3:] = v
    return states


def residual(unknowns, steps):
    """Each body minus the one before it, a third of the period later; and what fixes place, size and direction."""
    state = unknowns[:12].reshape(6, 2)
    end = path(state, unknowns[12], steps)[steps]
    out = np.zeros(18)
    for i in range(3):
        out[2 * i : 2 * i + 2] = end[i] - state[(i - 1) % 3]
        out[6 + 2 * i : 8 + 2 * i] = end[3 + i] - state[3 + (i - 1) % 3]
    out[12:14] = np.sum(state[:3], axis=0)
    out[14:16] = state[2]  # this one starts in the origin
    out[16:18] = state[0] - START[0]  # the size, and the direction of the whole
    return out


def energy(states: np.ndarray) -> np.ndarray:
    """Kinetic and potential energy of each state."""
    total = 0.5 * np.sum(states[:, 3:] ** 2, axis=(1, 2))
    for i in range(3):
        for j in range(i):
            total -= 1.0 / np.linalg.norm(states[:, i] - states[:, j], axis=1)
    return total


def plot(before: np.ndarray, after: np.ndarray) -> None:
    """The paths from the guess and from the solution, over a whole period."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for axis, states, title in zip(axes, (before, after), ("guess", "found")):
        for i, colour in enumerate(("C0", "C1", "C3")):
            axis.plot(*states[:, i].T, color=colour, lw=3.0 - i)
            axis.plot(*states[0, i], "o", ms=9, color=colour)
        axis.set_title(title)
        axis.set_aspect("equal", "datalim")
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    guess = np.append(START.ravel(), PERIOD)
    found = least_squares(residual, guess, jac=tg.jacobian(residual), args=(STEPS,), method="lm")
    state, period = found.x[:12].reshape(6, 2), found.x[12]
    before = path(START, 3.0 * PERIOD, 3 * STEPS)
    after = path(state, 3.0 * period, 3 * STEPS)
    miss = float(np.abs(after[-1] - after[0]).max())
    unit = float(period / np.linalg.norm(state[0]) ** 1.5)  # Kepler's third law
    print(f"{guess.size} unknowns, {found.njev} Jacobians of {STEPS} steps")
    print(f"residual          {np.abs(residual(guess, STEPS)).max():.2f} -> {np.abs(found.fun).max():.1e}")
    print(
        f"period            {period:.6f}; {unit:.6f} where the outer bodies start at distance 1 (published: 6.325914)"
    )
    print(f"after a period    back to {miss:.1e}; energy constant to {np.ptp(energy(after)):.1e}")
    plot(before, after)
    print(f"saved             {OUTPUT}")
    return {"period": unit, "miss": miss}


if __name__ == "__main__":
    main()
