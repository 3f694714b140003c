"""Isothermal flash: Antoine pressures, Rachford-Rice by bracketed Newton, with dataclasses."""
from dataclasses import dataclass, field
import math


@dataclass
class Species:
    name: str
    z: float
    a: float
    b: float
    c: float

    def pressure(self, T):
        return 10.0 ** (self.a - self.b / (self.c + T))


@dataclass
class Mixture:
    parts: list = field(default_factory=list)

    def ratios(self, T, P):
        return [s.pressure(T) / P for s in self.parts]

    def flash(self, T, P):
        K = self.ratios(T, P)
        def g(v):
            return sum(s.z * (k - 1.0) / (1.0 + v * (k - 1.0)) for s, k in zip(self.parts, K))
        def slope(v):
            return -sum(s.z * (k - 1.0) ** 2 / (1.0 + v * (k - 1.0)) ** 2 for s, k in zip(self.parts, K))
        lo, hi, v = 0.0, 1.0, 0.5
        for _ in range(50):
            y = g(v)
            if y > 0:
                lo = v
            else:
                hi = v
            new = v - y / slope(v)
            if not lo <= new <= hi:
                new = 0.5 * (lo + hi)
            if abs(new - v) < 1e-14:
                v = new
                break
            v = new
        x = [s.z / (1.0 + v * (k - 1.0)) for s, k in zip(self.parts, K)]
        return v, x


def f(T, P, z):
    mix = Mixture()
    for name, zi, (a, b, c) in zip(("benzene", "toluene", "xylene"), z,
                                   [(6.90565, 1211.033, 220.79), (6.95464, 1344.8, 219.482), (6.99052, 1453.43, 215.307)]):
        mix.parts.append(Species(name, zi, a, b, c))
    v, x = mix.flash(T, P)
    return v + x[0] * math.log(x[1])


ARGS = (102.0, 760.0, (0.4, 0.35, 0.25))
