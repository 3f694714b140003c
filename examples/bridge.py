"""Design a bridge: where should material be, so that a beam of given mass bends least?

A rectangle of elements, supported at its lower corners, carries a load along its deck. Each element has a density
between void and solid; the stiffness is assembled and solved as in a finite element program. The gradient of the
compliance (the work of the load) comes from differentiating that program; optimality criteria, the method of
Bendsoe and Sigmund, moves the material.

Run it: `python examples/bridge.py`. It saves `examples/output/bridge.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tapegen import differentiable

WIDTH, HEIGHT = 28, 12  # elements
SHARE = 0.4  # of the rectangle that is material
PENALTY = 3.0  # makes densities between void and solid weak for their mass
RADIUS = 1.5  # of the filter that keeps members from being thinner than an element
ITERATIONS = 50
OUTPUT = pathlib.Path(__file__).parent / "output" / "bridge.png"


def element_stiffness(poisson: float = 0.3) -> np.ndarray:
    """Of a square element with four nodes in plane stress, thickness and modulus 1; by two-point Gauss quadrature."""
    material = np.array([[1.0, poisson, 0.0], [poisson, 1.0, 0.0], [0.0, 0.0, 0.5 * (1.0 - poisson)]]) / (
        1 - poisson**2
    )
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    total = np.zeros((8, 8))
    for x in (-1 / np.sqrt(3), 1 / np.sqrt(3)):
        for y in (-1 / np.sqrt(3), 1 / np.sqrt(3)):
            by_x = 0.5 * corners[:, 0] * (1 + corners[:, 1] * y)
            by_y = 0.5 * corners[:, 1] * (1 + corners[:, 0] * x)
            strain = np.zeros((3, 8))
            strain[0, 0::2] = strain[2, 1::2] = by_x
            strain[1, 1::2] = strain[2, 0::2] = by_y
            total += 0.25 * strain.T @ material @ strain
    return total


def mesh() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees of freedom of each element, those that can move, and the load on the latter."""
    node = np.arange((WIDTH + 1) * (HEIGHT + 1)).reshape(WIDTH + 1, HEIGHT + 1)
    corners = [node[:-1, :-1], node[1:, :-1], node[1:, 1:], node[:-1, 1:]]
    dofs = np.stack([2 * c.ravel() + k for c in corners for k in (0, 1)], axis=1)
    fixed = [2 * node[0, 0], 2 * node[0, 0] + 1, 2 * node[-1, 0], 2 * node[-1, 0] + 1]
    load = np.zeros(2 * node.size)
    load[2 * node[:, 0] + 1] = -1.0 / (WIDTH + 1)  # the deck is the lower edge
    free = np.setdiff1d(np.arange(2 * node.size), fixed)
    return dofs, free, load[free]


def weights() -> np.ndarray:
    """The filter: each density becomes a weighted mean of its neighbours."""
    x, y = np.divmod(np.arange(WIDTH * HEIGHT), HEIGHT)
    near = np.maximum(0.0, RADIUS - np.hypot(x[:, None] - x, y[:, None] - y))
    return near / near.sum(axis=1, keepdims=True)


@differentiable
def compliance(density, blur, unit, dofs, free, load):
    """Work of the load: assemble the stiffness, solve for the displacements."""
    modulus = 1e-4 + (blur @ density) ** PENALTY
    size = free.size + 4
    stiffness = np.zeros((size, size))
    for e in range(dofs.shape[0]):
        for i in range(8):
            for j in range(8):
                stiffness[dofs[e, i], dofs[e, j]] += modulus[e] * unit[i, j]
    return load @ np.linalg.solve(stiffness[free][:, free], load)


def move_material(density: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """More where it helps, less where it does not, with the same mass: bisection for the price of material."""
    low, high = 1e-9, 1e9
    while high / low > 1.0 + 1e-6:
        price = np.sqrt(low * high)
        wanted = density * np.sqrt(np.maximum(-gradient, 0.0) / price)
        changed = np.clip(wanted, np.maximum(density - 0.2, 0.01), np.minimum(density + 0.2, 1.0))
        low, high = (price, high) if changed.mean() > SHARE else (low, price)
    return changed


def plot(density: np.ndarray, history: list[float]) -> None:
    """The bridge, and how its compliance fell."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=(1.8, 1), layout="constrained")
    axes[0].imshow(density.reshape(WIDTH, HEIGHT).T, origin="lower", cmap="Greys", vmin=0.0, vmax=1.0)
    axes[0].plot([0, WIDTH - 1], [-1.0, -1.0], "^", ms=9, color="C3", clip_on=False)
    axes[0].set_title("material")
    axes[0].set_axis_off()
    axes[1].semilogy(history)
    axes[1].set_xlabel("iteration")
    axes[1].set_ylabel("compliance")
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    blur, unit = weights(), element_stiffness()
    dofs, free, load = mesh()
    density = np.full(WIDTH * HEIGHT, SHARE)
    history = []
    for _ in range(ITERATIONS):
        value, gradient = compliance.value_and_grad(density, blur, unit, dofs, free, load)
        history.append(value)
        density = move_material(density, gradient)
    print(f"{density.size} densities, {free.size} degrees of freedom, {len(history)} gradients")
    print(f"compliance        {history[0]:.2f} with the material spread evenly, {history[-1]:.2f} as a bridge")
    print(
        f"material          {100 * density.mean():.1f} % of the rectangle, {100 * np.mean(density > 0.9):.0f} % solid"
    )
    plot(blur @ density, history)
    print(f"saved             {OUTPUT}")
    return {"before": history[0], "after": history[-1], "share": float(density.mean())}


if __name__ == "__main__":
    main()
