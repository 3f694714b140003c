"""An American option on a binomial tree; its kind is matched, the values are a list that is written backwards."""

import math
from collections import namedtuple

import numpy as np

Option = namedtuple("Option", "strike maturity kind american")

def f(params, opt, steps):
    spot, vol, rate = params
    dt = opt.maturity / steps
    u = math.exp(vol * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(rate * dt) - d) / (u - d)
    if not 0 < p < 1:
        raise ValueError(f"arbitrage: p={p:.3f} not in (0, 1)")
    disc = math.exp(-rate * dt)
    match opt.kind:
        case "call":
            sign = 1
        case "put":
            sign = -1
        case _:
            raise ValueError(opt.kind)
    values = [max(sign * (spot * u**j * d ** (steps - j) - opt.strike), 0.0) for j in range(steps + 1)]
    for n in range(steps - 1, -1, -1):
        for j in range(n + 1):
            cont = disc * (p * values[j + 1] + (1 - p) * values[j])
            if opt.american:
                cont = max(cont, sign * (spot * u**j * d ** (n - j) - opt.strike))
            values[j] = cont
    return values[0]

WRT = (0,)
TOL = 1e-6
ARGS = (np.array([100.0, 0.25, 0.03]), Option(105.3, 0.5, "put", True), 9)
