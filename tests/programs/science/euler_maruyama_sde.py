"""Two coupled stochastic equations with a reflecting wall and given noise; drift and volatility as methods."""
import numpy as np
from dataclasses import dataclass, field

@dataclass
class Heston:
    kappa: float
    theta: float
    xi: float
    rho: float = -0.6
    history: list = field(default_factory=list)

    def drift(self, s, v):
        return 0.02 * s, self.kappa * (self.theta - v)

    def noise(self, s, v, dw):
        root = np.sqrt(max(v, 1e-4))
        w2 = self.rho * dw[0] + np.sqrt(1.0 - self.rho**2) * dw[1]
        return s * root * dw[0], self.xi * root * w2

NOISE = np.random.default_rng(11).normal(0, 0.3, (6, 2))

def f(model, s0):
    s, v, dt = s0, model.theta, 0.1
    history = []
    for dw in NOISE:
        (ds, dv), (ns, nv) = model.drift(s, v), model.noise(s, v, dw * dt**0.5)
        s += ds * dt + ns
        v = abs(v + dv * dt + nv)
        history.append((s, v))
    return sum(h[0] for h in history) / len(history) + history[-1][1]

WRT = (0, 1)
def ARGS():
    return Heston(1.5, 0.04, 0.3), 1.0
