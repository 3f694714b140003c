"""A rigid body turns: quaternions as a class with operators, class methods and slots."""

import math

import numpy as np

class Quaternion:
    __slots__ = ("w", "v")
    def __init__(self, w, v):
        self.w = w
        self.v = v
    def __mul__(self, o):
        return Quaternion(self.w * o.w - self.v @ o.v, self.w * o.v + o.w * self.v + np.cross(self.v, o.v))
    def conj(self):
        return Quaternion(self.w, -self.v)
    def normalized(self):
        n = math.sqrt(self.w**2 + self.v @ self.v)
        return Quaternion(self.w / n, self.v / n)
    def rotate(self, x):
        return (self * Quaternion(0.0, x) * self.conj()).v
    @classmethod
    def from_axis(cls, axis, angle):
        return cls(math.cos(angle / 2), math.sin(angle / 2) * axis)
    def __abs__(self):
        return math.sqrt(self.w**2 + self.v @ self.v)

def f(omega0, inertia, dt=0.05, steps=6):
    q = Quaternion.from_axis(np.array([0.0, 0.0, 1.0]), 0.3)
    w = omega0
    for _ in range(steps):
        torque = q.conj().rotate(np.array([0.0, 0.0, -0.1]))
        w = w + dt * (torque - np.cross(w, inertia * w)) / inertia
        dq = q * Quaternion(0.0, w)
        q = Quaternion(q.w + 0.5 * dt * dq.w, q.v + 0.5 * dt * dq.v).normalized()
    return q.rotate(np.array([1.0, 0.0, 0.0]))[1] + abs(q) + 0.5 * np.sum(inertia * w**2)

WRT = (0, 1)
ARGS = (np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, 3.0]))
