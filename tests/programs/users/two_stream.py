"""Two-stream radiative transfer by adding layers; reflectance and absorbed flux by dictionary of bands."""
import numpy as np

def layer_rt(tau, omega, g):
    gamma1 = (7 - omega * (4 + 3 * g)) / 4
    gamma2 = -(1 - omega * (4 - 3 * g)) / 4
    lam = np.sqrt(gamma1**2 - gamma2**2)
    e = np.exp(-2 * lam * tau)
    bottom = lam * (1 + e) + gamma1 * (1 - e)
    return gamma2 * (1 - e) / bottom, 2 * lam * np.exp(-lam * tau) / bottom

def f(tau, bands, albedo):
    absorbed = {}
    for band, (omega, g, share) in sorted(bands.items()):
        r, t = layer_rt(tau, omega, g)
        below = albedo
        R = [albedo]
        for k in reversed(range(len(tau))):
            below = r[k] + t[k] ** 2 * below / (1 - r[k] * below)
            R.insert(0, below)
        down = np.empty(len(tau) + 1)
        down[0] = share
        for k in range(len(tau)):
            down[k + 1] = down[k] * t[k] / (1 - r[k] * R[k + 1])
        up = down * np.array(R)
        absorbed[band] = -np.diff(down - up)
    heating = sum(absorbed.values())
    return heating @ np.arange(1.0, len(tau) + 1), absorbed

ARGS = (np.array([0.2, 0.7, 1.3]), {"vis": (0.99, 0.85, 0.55), "nir": (0.93, 0.8, 0.45)}, 0.15)
