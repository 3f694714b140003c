"""Design a photographic lens: bend the surfaces of a triplet until rays from each direction meet in a point.

Rays are traced through three lenses of two glasses, surface by surface, by Snell's law in vectors. The merit function
is the size of the spots that three directions make on the film, plus the error of the focal length. Its derivatives
with respect to six curvatures and three distances come from differentiating the ray tracer; Levenberg and Marquardt's
method uses the Jacobian of all ray errors.

Run it: `python examples/lens.py`. It saves `examples/output/lens.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import tapegen as tg

CROWN, FLINT = 1.62041, 1.62004  # refractive indices of SK16 and F2 ...
INDEX = np.array([1.0, CROWN, 1.0, FLINT, 1.0, CROWN, 1.0])
FOCAL_LENGTH = 50.0  # millimetres
FIELDS = np.radians([0.0, 10.0, 16.0])  # directions to the axis
RAYS = 60  # in each direction
EVALUATIONS = 200  # of the optimizer, at most
PUPIL = 4.5  # radius of the bundle of rays
GLASS = np.array([3.3, 1.0, 3.0])  # thickness of the lenses
# curvatures of six surfaces in 1/mm, two distances between lenses, and from the last to the film
START = np.array([1 / 26.0, 0.0, -1 / 25.0, 1 / 23.0, 0.0, -1 / 22.0, 6.0, 5.0, 41.0])
UNIT = np.array([0.01] * 6 + [1.0, 1.0, 5.0])
LOW = np.array([-0.1] * 6 + [3.0, 3.0, 30.0])
HIGH = np.array([0.1] * 6 + [9.0, 9.0, 55.0])
OUTPUT = pathlib.Path(__file__).parent / "output" / "lens.png"


def spacing(p):
    """Distance from each surface to the next, and from the last to the film."""
    return np.array([GLASS[0], p[6], GLASS[1], p[7], GLASS[2], p[8]])


def trace(p, position, direction):
    """Points of each ray on the six surfaces and on the film; rays are rows, the axis is the third coordinate.

    Each surface is a sphere through the origin of its own coordinates.
    """
    gaps = spacing(p)
    points = np.empty((7, *position.shape))
    offset = 0.0
    for s in range(6):
        c = p[s]
        # distance along the ray to the sphere: the root that stays finite where the surface is flat
        forward = direction[:, 2] - c * np.sum(position * direction, axis=1)
        rest = c * np.sum(position**2, axis=1) - 2.0 * position[:, 2]
        root = np.sqrt(forward**2 - c * rest)
        position = position + (rest / (forward + root))[:, None] * direction
        points[s] = position
        points[s, :, 2] += offset
        # Snell's law
        normal = -c * position
        normal[:, 2] += 1.0
        ratio = INDEX[s] / INDEX[s + 1]
        cosine = np.sum(normal * direction, axis=1)
        bent = np.sqrt(1.0 - ratio**2 * (1.0 - cosine**2))
        direction = ratio * direction + (bent - ratio * cosine)[:, None] * normal
        position = position.copy()
        position[:, 2] -= gaps[s]
        offset += gaps[s]
    position = position - (position[:, 2] / direction[:, 2])[:, None] * direction
    points[6] = position
    points[6, :, 2] += offset
    return points


def bundle(field: float, rays: int) -> tuple[np.ndarray, np.ndarray]:
    """Parallel rays that fill the pupil (the middle lens), in the plane before the first surface."""
    radius = PUPIL * np.sqrt((np.arange(rays) + 0.5) / rays)
    angle = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(rays)
    direction = np.tile([0.0, np.sin(field), np.cos(field)], (rays, 1))
    position = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(rays)], axis=1)
    position[:, 1] -= 9.0 * np.tan(field)  # the pupil lies about 9 mm behind
    return position, direction


def ray_errors(p, positions, directions, near, near_direction):
    """Where rays land beside the middle of their spot, in units of 0.01 mm; and the error of the focal length."""
    fields, rays = positions.shape[:2]
    errors = np.empty(2 * fields * rays + 1)
    for f in range(fields):
        landed = trace(p, positions[f], directions[f])[6]
        for k in range(2):
            first = (2 * f + k) * rays
            errors[first : first + rays] = (landed[:, k] - np.mean(landed[:, k])) / 0.01 / np.sqrt(rays)
    # a ray close to the axis at a small angle: the height of its image over the angle
    height = trace(p, near, near_direction)[6, 0, 1]
    errors[-1] = (height / near_direction[0, 1] - FOCAL_LENGTH) / 0.1
    return errors


def spots(p: np.ndarray, rays: int) -> list[float]:
    """Root mean square radius of the spot of each direction, in thousandths of a millimetre."""
    found = []
    for field in FIELDS:
        landed = trace(p, *bundle(field, rays))[6, :, :2]
        found.append(1e3 * float(np.sqrt(np.mean(np.sum((landed - landed.mean(axis=0)) ** 2, axis=1)))))
    return found


def draw(axis, p: np.ndarray, title: str) -> None:
    """Lenses, and rays of three directions."""
    edges = np.concatenate([[0.0], np.cumsum(spacing(p))])
    height = np.linspace(-7.5, 7.5, 61)
    for s in range(0, 6, 2):
        sag = [p[k] * height**2 / (1.0 + np.sqrt(1.0 - (p[k] * height) ** 2)) + edges[k] for k in (s, s + 1)]
        axis.fill(
            np.concatenate([sag[0], sag[1][::-1]]), np.concatenate([height, height[::-1]]), color="#bcd6ea", ec="0.4"
        )
    for field, colour in zip(FIELDS, ("C0", "C2", "C3")):
        y = np.linspace(-PUPIL, PUPIL, 7)
        start = np.stack([0 * y, y - 9.0 * np.tan(field), 0 * y], axis=1)
        direction = np.tile([0.0, np.sin(field), np.cos(field)], (y.size, 1))
        path = np.concatenate([(start - 8.0 * direction)[None], trace(p, start, direction)])
        axis.plot(path[:, :, 2], path[:, :, 1], color=colour, lw=0.7)
    axis.set_aspect("equal")
    axis.set_axis_off()
    axis.set_title(title)


def plot(before: np.ndarray, after: np.ndarray, rays: int) -> None:
    """Both lenses, and the spots of the second."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 5.5), width_ratios=(2.4, 1), layout="constrained")
    for row, (p, name) in zip(axes, ((before, "start"), (after, "found"))):
        draw(row[0], p, name)
        for field, colour in zip(FIELDS, ("C0", "C2", "C3")):
            landed = trace(p, *bundle(field, rays))[6, :, :2]
            row[1].plot(
                *(1e3 * (landed - landed.mean(axis=0))).T, ".", ms=3, color=colour, label=f"{np.degrees(field):.0f}°"
            )
        row[1].set_aspect("equal", "datalim")
        row[1].set_title("spots, thousandths of a mm")
    axes[1, 1].legend(frameon=False, fontsize=8)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    positions, directions = (np.array(part) for part in zip(*(bundle(field, RAYS) for field in FIELDS)))
    near, near_direction = np.array([[0.0, 0.0, 0.0]]), np.array([[0.0, 1e-3, np.sqrt(1.0 - 1e-6)]])
    data = (positions, directions, near, near_direction)
    found = least_squares(
        ray_errors,
        START,
        args=data,
        jac=tg.jacobian(ray_errors),
        bounds=(LOW, HIGH),
        x_scale=UNIT,
        max_nfev=EVALUATIONS,
    )
    before, after = spots(START, 400), spots(found.x, 400)
    print(f"{found.fun.size} ray errors, {START.size} unknowns; {found.njev} Jacobians")
    for field, old, new in zip(np.degrees(FIELDS), before, after):
        print(f"spot at {field:2.0f} degrees  {old:6.1f} -> {new:.1f} thousandths of a millimetre")
    focal = FOCAL_LENGTH + 0.1 * found.fun[-1]
    print(f"focal length      {focal:.2f} mm")
    print(f"radii             {', '.join(f'{1 / c:.1f}' for c in found.x[:6])} mm")
    plot(START, found.x, 400)
    print(f"saved             {OUTPUT}")
    return {"before": max(before), "after": max(after), "focal": float(focal)}


if __name__ == "__main__":
    main()
