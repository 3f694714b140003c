"""Two-compartment pharmacokinetics with repeated doses, lag time and a likelihood over samples with a detection limit."""

import math

import numpy as np


def simulate(params, doses, times, dt=0.05):
    cl, v1, q, v2, ka = (params[k] for k in ("cl", "v1", "q", "v2", "ka"))
    lag = params.get("lag", 0.0)
    gut, central, peripheral = 0.0, 0.0, 0.0
    out = np.full(len(times), np.nan)
    pending = sorted(doses)
    t, j = 0.0, 0
    while j < len(times):
        for when, amount in pending:
            if abs(when + lag - t) < dt / 2:
                gut += amount
        if t >= times[j] - dt / 2:
            out[j] = central / v1
            j += 1
        k10, k12, k21 = cl / v1, q / v1, q / v2
        d_gut = -ka * gut
        d_c = ka * gut - (k10 + k12) * central + k21 * peripheral
        d_p = k12 * central - k21 * peripheral
        gut, central, peripheral = gut + dt * d_gut, central + dt * d_c, peripheral + dt * d_p
        t += dt
    return out


def f(params, observed, lloq=0.05):
    conc = simulate(params, [(0.0, 100.0), (2.0, 50.0)], [0.5, 1.0, 2.5, 3.0])
    sigma = params["sigma"]
    ll = 0.0
    for pred, obs in zip(conc, observed):
        if obs is None:
            z = (lloq - pred) / (sigma * pred + 0.01)
            ll += math.log(0.5 * math.erfc(-z / math.sqrt(2)))
            continue
        sd = sigma * pred + 0.01
        ll -= 0.5 * ((obs - pred) / sd) ** 2 + math.log(sd)
    return -ll


WRT = (0,)
ARGS = ({"cl": 1.2, "v1": 20.0, "q": 0.8, "v2": 35.0, "ka": 1.1, "sigma": 0.15, "lag": 0.1}, [1.4, 2.6, None, 4.1])
