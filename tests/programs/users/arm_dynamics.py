"""Inverse dynamics of a serial arm by Newton and Euler: lists of vectors, two passes, np.cross."""

import numpy as np


def rot(axis, q):
    c, s = np.cos(q), np.sin(q)
    if axis == "z":
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def inverse_dynamics(q, qd, qdd, links):
    w, wd, a = np.zeros(3), np.zeros(3), np.array([0.0, 0.0, 9.81])
    forces, torques, rots = [], [], []
    for k, link in enumerate(links):
        R = rot(link["axis"], q[k]).T
        z = np.array([0.0, 0.0, 1.0]) if link["axis"] == "z" else np.array([1.0, 0.0, 0.0])
        w_new = R @ w + z * qd[k]
        wd = R @ wd + np.cross(R @ w, z * qd[k]) + z * qdd[k]
        w = w_new
        p = np.array([0.0, link["length"], 0.0])
        ac = R @ a + np.cross(wd, p / 2) + np.cross(w, np.cross(w, p / 2))
        a = R @ a + np.cross(wd, p) + np.cross(w, np.cross(w, p))
        inertia = link["mass"] * link["length"] ** 2 / 12
        forces.append(link["mass"] * ac)
        torques.append(inertia * wd)
        rots.append(R)
    tau = np.zeros(len(links))
    f, n = np.zeros(3), np.zeros(3)
    for k in reversed(range(len(links))):
        link = links[k]
        p = np.array([0.0, link["length"], 0.0])
        n = torques[k] + n + np.cross(p / 2, forces[k]) + np.cross(p, f)
        f = f + forces[k]
        tau[k] = n[2] if link["axis"] == "z" else n[0]
        f, n = rots[k].T @ f, rots[k].T @ n
    return tau


def f(q, qd, masses):
    links = [{"axis": ax, "mass": m, "length": 0.4 + 0.1 * i} for i, (ax, m) in enumerate(zip("zxx", masses))]
    tau = inverse_dynamics(q, qd, np.array([0.3, -0.2, 0.5]), links)
    return np.linalg.norm(tau) + tau @ qd


ARGS = (np.array([0.3, 0.7, -0.4]), np.array([0.5, -0.3, 0.8]), [2.0, 1.5, 0.7])
