"""Attitude of a spinning rigid body: Euler's equations and quaternions."""
import numpy as np


def multiply(p, q):
    w1, x1, y1, z1 = p
    w2, x2, y2, z2 = q
    return np.array(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ]
    )


def rotate(q, v):
    conj = q * np.array([1, -1, -1, -1])
    return multiply(multiply(q, np.concatenate(([0.0], v))), conj)[1:]


def f(inertia, omega, torque, dt=0.05, steps=12):
    q = np.array([1.0, 0.0, 0.0, 0.0])
    track = []
    for _ in range(steps):
        domega = (torque - np.cross(omega, inertia * omega)) / inertia
        omega = omega + dt * domega
        q = q + 0.5 * dt * multiply(q, np.append(0.0, omega))
        q /= np.linalg.norm(q)
        track.append(rotate(q, np.array([0.0, 0.0, 1.0])))
    track = np.array(track)
    return np.sum(track[:, 0] * track[:, 1]) + track[-1].max()


def ARGS():
    return np.array([1.0, 1.7, 2.4]), np.array([0.9, 0.3, -1.2]), np.array([0.1, -0.2, 0.05])
