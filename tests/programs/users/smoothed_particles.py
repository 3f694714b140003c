"""Smoothed particles: density by cubic spline kernel, pressure and viscosity, leapfrog."""
import numpy as np

def kernel(q):
    if q < 1:
        return 1 - 1.5 * q**2 + 0.75 * q**3
    elif q < 2:
        return 0.25 * (2 - q) ** 3
    return 0.0

def dkernel(q):
    if q < 1:
        return -3 * q + 2.25 * q * q
    if q < 2:
        return -0.75 * (2 - q) ** 2
    return 0.0

class Fluid:
    def __init__(self, x, v, h, stiffness=1.0, visc=0.1):
        self.x, self.v, self.h = x, v, h
        self.stiffness = stiffness
        self.visc = visc

    def density(self):
        n = len(self.x)
        rho = np.empty(n)
        for i in range(n):
            rho[i] = sum(kernel(abs(self.x[i] - self.x[j]) / self.h) for j in range(n)) / self.h
        return rho

    def accelerations(self):
        rho = self.density()
        p = self.stiffness * (rho**2 - 1)
        a = np.zeros_like(self.x)
        for i, (xi, vi) in enumerate(zip(self.x, self.v)):
            for j in range(len(self.x)):
                if i == j:
                    continue
                d = xi - self.x[j]
                q = abs(d) / self.h
                if q >= 2:
                    continue
                g = dkernel(q) * np.sign(d) / self.h**2
                a[i] -= (p[i] / rho[i]**2 + p[j] / rho[j]**2) * g
                a[i] += self.visc * (self.v[j] - vi) / (rho[i] * rho[j])
        return a

    def step(self, dt):
        self.v = self.v + dt * self.accelerations()
        self.x = self.x + dt * self.v

def f(x, v, h, stiffness):
    fluid = Fluid(x.copy(), v.copy(), h, stiffness)
    t = 0.0
    while t < 0.25:
        fluid.step(0.05)
        t += 0.05
    return 0.5 * np.dot(fluid.v, fluid.v) + fluid.x.std()

ARGS = (np.array([0.0, 0.31, 0.72, 1.13, 1.48]), np.array([0.1, -0.2, 0.05, 0.3, -0.1]), 0.4, 0.7)
