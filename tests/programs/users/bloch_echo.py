"""Magnetisation through a spin echo sequence: pulses and waits in a list, rotations, an ensemble of offsets."""

import numpy as np


def rotation(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    R = np.eye(3)
    a, b = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    R[a, a] = R[b, b] = c
    R[a, b], R[b, a] = -s, s
    return R


def relax(m, t, t1, t2, m0=1.0):
    e1, e2 = np.exp(-t / t1), np.exp(-t / t2)
    return np.array([m[0] * e2, m[1] * e2, m0 + (m[2] - m0) * e1])


def play(sequence, offset, t1, t2):
    m = np.array([0.0, 0.0, 1.0])
    signal = []
    for event, *rest in sequence:
        if event == "pulse":
            axis, degrees = rest
            m = rotation(axis, np.deg2rad(degrees)) @ m
        elif event == "wait":
            (t,) = rest
            m = rotation("z", offset * t) @ m
            m = relax(m, t, t1, t2)
        elif event == "spoil":
            m[:2] = 0
        elif event == "read":
            signal.append(complex(m[0], m[1]))
    return signal


def f(t1, t2, flip, offsets):
    sequence = [("pulse", "x", flip), ("wait", 0.4)]
    for _ in range(3):
        sequence += [("pulse", "y", 2 * flip), ("wait", 0.4), ("read",), ("wait", 0.4)]
    sequence += [("spoil",), ("wait", 1.0), ("pulse", "x", flip), ("read",)]
    echoes = np.zeros(4, dtype=complex)
    for w in offsets:
        echoes += np.array(play(sequence, w, t1, t2))
    amplitude = np.abs(echoes) / len(offsets)
    decay = np.log(amplitude[0] / amplitude[2])
    return amplitude.sum() + decay + 0.1 * np.angle(echoes[-1])


ARGS = (1.1, 0.6, 87.0, [-0.8, -0.3, 0.1, 0.5, 0.9])
