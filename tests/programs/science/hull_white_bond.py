"""Bond price by integrating the short rate's mean reversion; a class with cached properties."""
from functools import cached_property
import numpy as np

class HullWhite:
    def __init__(self, a, sigma, curve):
        self.a, self.sigma, self.curve = a, sigma, curve

    @cached_property
    def scale(self):
        return self.sigma**2 / (4.0 * self.a)

    def forward(self, t):
        c = self.curve
        return c["level"] + c["slope"] * np.exp(-c["decay"] * t)

    def discount(self, t, n=8):
        h = t / n
        total = 0.5 * (self.forward(0.0) + self.forward(t))
        total += sum(self.forward(k * h) for k in range(1, n))
        return np.exp(-total * h)

    def bond(self, r, t, maturity):
        b = (1.0 - np.exp(-self.a * (maturity - t))) / self.a
        variance = self.scale * (1.0 - np.exp(-2.0 * self.a * t)) * b**2
        ratio = self.discount(maturity) / self.discount(t)
        return ratio * np.exp(b * self.forward(t) - variance - b * r)

def f(a, sigma, curve):
    model = HullWhite(a, sigma, curve)
    return [model.bond(r, 0.5, maturity) for r in (0.01, 0.02) for maturity in (1.0, 3.0)]

ARGS = (0.1, 0.02, {"level": 0.03, "slope": -0.01, "decay": 0.4})
