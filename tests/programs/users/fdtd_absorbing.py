"""1-D Maxwell by FDTD with a graded absorbing layer; Courant number, a lossy slab, a probe."""
import numpy as np
from dataclasses import dataclass

@dataclass
class Slab:
    eps: float
    sigma: float
    start: int
    stop: int

def pml_profile(n, width, strength, order=3):
    s = np.zeros(n)
    for k in range(width):
        depth = (width - k) / width
        s[k] = strength * depth**order
        s[-1 - k] = s[k]
    return s

def f(slab, strength, freq):
    n, steps, width = 40, 60, 6
    ez, hy = np.zeros(n), np.zeros(n - 1)
    eps = np.ones(n)
    sig = pml_profile(n, width, strength)
    eps[slab.start:slab.stop] = slab.eps
    sig[slab.start:slab.stop] += slab.sigma
    ca = (1 - 0.25 * sig / eps) / (1 + 0.25 * sig / eps)
    cb = (0.5 / eps) / (1 + 0.25 * sig / eps)
    sm = 0.5 * (sig[1:] + sig[:-1])
    da, db = (1 - 0.25 * sm) / (1 + 0.25 * sm), 0.5 / (1 + 0.25 * sm)
    probe = []
    for t in range(steps):
        hy[:] = da * hy + db * np.diff(ez)
        ez[1:-1] = ca[1:-1] * ez[1:-1] + cb[1:-1] * (hy[1:] - hy[:-1])
        ez[10] += np.exp(-((t - 15) / 5.0) ** 2) * np.sin(freq * t)
        if t % 5 == 0:
            probe.append(ez[30])
    return sum(p**2 for p in probe) + 0.1 * np.sum(hy**2)

ARGS = (Slab(2.3, 0.05, 18, 24), 0.8, 0.6)
