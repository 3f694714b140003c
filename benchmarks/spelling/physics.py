"""Gravity of all pairs, heat in a plate, Lorenz's model of 1996."""

import dataclasses
import math

import numpy as np

from benchmarks.spelling import Kernel, Spelling, spelled


def gravity_by_pairs(pos, mass, eps):
    n = len(mass)
    acc = np.zeros((n, 3))
    for i in range(n):
        for j in range(i):
            dx = pos[j, 0] - pos[i, 0]
            dy = pos[j, 1] - pos[i, 1]
            dz = pos[j, 2] - pos[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + eps**2
            w = 1.0 / (r2 * math.sqrt(r2))
            acc[i, 0] += mass[j] * w * dx
            acc[i, 1] += mass[j] * w * dy
            acc[i, 2] += mass[j] * w * dz
            acc[j, 0] -= mass[i] * w * dx
            acc[j, 1] -= mass[i] * w * dy
            acc[j, 2] -= mass[i] * w * dz
    total = 0.0
    for i in range(n):
        total += acc[i, 0] ** 2 + acc[i, 1] ** 2 + acc[i, 2] ** 2
    return total


def gravity_by_literals(pos, mass, eps):
    n = mass.shape[0]
    acc = np.zeros_like(pos)
    for i in range(n):
        for j in range(i + 1, n):
            dx = pos[j, 0] - pos[i, 0]
            dy = pos[j, 1] - pos[i, 1]
            dz = pos[j, 2] - pos[i, 2]
            w = (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
            acc[i, 0] += mass[j] * w * dx
            acc[i, 1] += mass[j] * w * dy
            acc[i, 2] += mass[j] * w * dz
            acc[j, 0] -= mass[i] * w * dx
            acc[j, 1] -= mass[i] * w * dy
            acc[j, 2] -= mass[i] * w * dz
    return (acc**2).sum()


def gravity_by_vectors(pos, mass, eps):
    n = len(mass)
    acc = np.zeros((n, 3))
    for i in range(n):
        for j in range(i):
            d = pos[j] - pos[i]
            r2 = d @ d + eps**2
            acc[i] += mass[j] * d / r2**1.5
            acc[j] -= mass[i] * d / r2**1.5
    return np.sum(acc * acc)


def pull(pos, mass, eps, i, j):
    d = pos[j] - pos[i]
    return mass[j] * d / (np.dot(d, d) + eps * eps) ** 1.5


def gravity_by_helper(pos, mass, eps):
    n = len(mass)
    total = 0.0
    for i in range(n):
        acc = np.zeros(3)
        for j in range(n):
            if i != j:
                acc += pull(pos, mass, eps, i, j)
        total += np.sum(acc**2)
    return total


def gravity_by_arrays(pos, mass, eps):
    d = pos[None, :, :] - pos[:, None, :]
    r2 = np.sum(d * d, axis=2) + eps**2
    acc = np.sum(mass[None, :, None] * d * (r2**-1.5)[:, :, None], axis=1)
    return np.sum(acc * acc)


@dataclasses.dataclass
class Bodies:
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    mass: np.ndarray


def gravity_by_columns(bodies, eps):
    x, y, z, mass = bodies.x, bodies.y, bodies.z, bodies.mass
    total = 0.0
    for i in range(len(mass)):
        dx, dy, dz = x - x[i], y - y[i], z - z[i]
        w = mass / (dx**2 + dy**2 + dz**2 + eps**2) ** 1.5
        total += np.sum(w * dx) ** 2 + np.sum(w * dy) ** 2 + np.sum(w * dz) ** 2
    return total


def gravity_args(n=600):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, n) / n, 0.1


GRAVITY = Kernel(
    gravity_args,
    (5,),
    (0, 1),
    spelled(
        *(gravity_by_pairs, gravity_by_literals, gravity_by_vectors, gravity_by_helper, gravity_by_arrays),
        dataclass=Spelling(
            gravity_by_columns,
            lambda pos, mass, eps: (Bodies(*map(np.ascontiguousarray, pos.T), mass), eps),
            (0,),
            lambda bodies: (np.stack([bodies.x, bodies.y, bodies.z], 1), bodies.mass),
        ),
    ),
)


def heat_by_slices(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += c * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return np.sum(u**2)


def heat_by_loops(u0, c, steps):
    n, m = u0.shape
    u = u0.copy()
    new = u0.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = u[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = new[i, j]
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += u[i, j] * u[i, j]
    return total


def heat_by_swaps(u0, c, steps):
    u = u0.copy()
    new = u0.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        u, new = new, u
    return (u * u).sum()


def laplacian(u):
    lap = np.zeros_like(u)
    lap[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
    return lap


def heat_by_new_arrays(u0, c, steps):
    u = u0
    for _ in range(steps):
        u = u + c * laplacian(u)
    return np.sum(u * u)


def heat_by_columns(u0, c, steps):
    u = u0.copy()
    t = 0
    while t < steps:
        old = u.copy()
        for j in range(1, u.shape[1] - 1):
            for i in range(1, u.shape[0] - 1):
                u[i, j] = old[i, j] * (1 - 4 * c) + c * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1])
        t += 1
    return np.vdot(u, u)


def heat_args(n=300, steps=40):
    return np.random.default_rng(0).uniform(size=(n, n)), 0.2, steps


HEAT = Kernel(
    heat_args,
    (6, 3),
    (0,),
    spelled(heat_by_slices, heat_by_loops, heat_by_swaps, heat_by_new_arrays, heat_by_columns),
)


def tendency_by_modulo(x, forcing):
    n = len(x)
    dx = np.empty(n)
    for i in range(n):
        dx[i] = (x[(i + 1) % n] - x[(i - 2) % n]) * x[(i - 1) % n] - x[i] + forcing
    return dx


def tendency_by_negative(x, forcing):
    n = x.size
    dx = np.zeros(n)
    for i in range(-1, n - 1):
        dx[i] = (x[i + 1] - x[i - 2]) * x[i - 1] - x[i] + forcing
    return dx


def tendency_by_guards(x, forcing):
    n = len(x)
    dx = np.zeros_like(x)
    for i in range(n):
        right = i + 1 if i + 1 < n else 0
        left = i - 1 if i > 0 else n - 1
        far = i - 2 if i > 1 else i - 2 + n
        dx[i] = (x[right] - x[far]) * x[left] - x[i] + forcing
    return dx


def tendency_by_rolls(x, forcing):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + forcing


def lorenz96_by_modulo(x0, forcing, dt, steps):
    x = x0.copy()
    for _ in range(steps):
        k1 = tendency_by_modulo(x, forcing)
        k2 = tendency_by_modulo(x + 0.5 * dt * k1, forcing)
        k3 = tendency_by_modulo(x + 0.5 * dt * k2, forcing)
        k4 = tendency_by_modulo(x + dt * k3, forcing)
        x += dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return np.sum(x * x)


def lorenz96_by_negative(x0, forcing, dt, steps):
    x = x0
    for _ in range(steps):
        k1 = tendency_by_negative(x, forcing)
        k2 = tendency_by_negative(x + dt / 2 * k1, forcing)
        k3 = tendency_by_negative(x + dt / 2 * k2, forcing)
        k4 = tendency_by_negative(x + dt * k3, forcing)
        x = x + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return x @ x


def lorenz96_by_guards(x0, forcing, dt, steps):
    x = x0.copy()
    t = 0
    while t < steps:
        k1 = tendency_by_guards(x, forcing)
        k2 = tendency_by_guards(x + 0.5 * dt * k1, forcing)
        k3 = tendency_by_guards(x + 0.5 * dt * k2, forcing)
        k4 = tendency_by_guards(x + dt * k3, forcing)
        for i in range(len(x)):
            x[i] += dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
        t += 1
    return np.dot(x, x)


def lorenz96_by_rolls(x0, forcing, dt, steps):
    x = x0
    for _ in range(steps):
        k1 = tendency_by_rolls(x, forcing)
        k2 = tendency_by_rolls(x + dt / 2 * k1, forcing)
        k3 = tendency_by_rolls(x + dt / 2 * k2, forcing)
        k4 = tendency_by_rolls(x + dt * k3, forcing)
        x = x + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return np.sum(x**2)


def lorenz96_by_padding(x0, forcing, dt, steps):
    x = x0.copy()
    stages = (0.0, 0.5, 0.5, 1.0)
    weights = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
    for _ in range(steps):
        k = np.zeros_like(x)
        new = x.copy()
        for ahead, weight in zip(stages, weights, strict=True):
            s = x + ahead * dt * k
            wide = np.concatenate((s[-2:], s, s[:1]))
            k = (wide[3:] - wide[:-3]) * wide[1:-2] - s + forcing
            new += weight * dt * k
        x = new
    return (x**2).sum()


def lorenz96_args(n=40, steps=3000, dt=0.0005):
    return 8.0 + np.random.default_rng(0).normal(size=n), 8.0, dt, steps


LORENZ96 = Kernel(
    lorenz96_args,
    (6, 4, 0.01),
    (0, 1),
    spelled(lorenz96_by_modulo, lorenz96_by_negative, lorenz96_by_guards, lorenz96_by_rolls, lorenz96_by_padding),
)


def logistic_map_by_range(x0, r, n):
    x = x0
    for _ in range(n):
        x = r * x * (1.0 - x)
    return x


def logistic_map_by_while(x0, r, n):
    x = x0
    while n > 0:
        x *= r * (1.0 - x)
        n -= 1
    return x


def logistic_map_by_array(x0, r, n):
    x = np.empty(n + 1)
    x[0] = x0
    for t in range(n):
        x[t + 1] = r * x[t] - r * x[t] ** 2
    return x[-1]


def logistic_map_by_list(x0, r, n):
    x = [x0]
    for t in range(n):
        x.append(r * x[t] * (1.0 - x[t]))
    return x[-1]


def grown(x, r):
    return r * x * (1 - x)


def logistic_map_by_helper(x0, r, n):
    state = (x0, r)
    for _ in range(n):
        state = (grown(*state), r)
    return state[0]


def logistic_map_args(n=300_000):
    return 0.3, 3.0, n  # where the derivative neither grows nor dies out fast


LOGISTIC_MAP = Kernel(
    logistic_map_args,
    (9,),
    (0, 1),
    spelled(
        *(logistic_map_by_range, logistic_map_by_while, logistic_map_by_array, logistic_map_by_list),
        logistic_map_by_helper,
    ),
)

KERNELS = {"gravity": GRAVITY, "heat": HEAT, "lorenz96": LORENZ96, "logistic_map": LOGISTIC_MAP}
