"""Knock-out option on a trinomial tree, one buffer per step, the barrier as a mask."""
import numpy as np

def f(spot, vol, rate=0.03, strike=100.0, barrier=120.0, steps=6, kind="call"):
    if kind not in ("call", "put"):
        raise ValueError(f"unknown kind {kind!r}")
    dt = 1.0 / steps
    up = np.exp(vol * np.sqrt(2 * dt))
    half = np.exp(rate * dt / 2)
    d, u = np.exp(-vol * np.sqrt(dt / 2)), np.exp(vol * np.sqrt(dt / 2))
    pu, pd = ((half - d) / (u - d)) ** 2, ((u - half) / (u - d)) ** 2
    pm = 1.0 - pu - pd
    prices = spot * up ** np.arange(-steps, steps + 1)
    sign = 1.0 if kind == "call" else -1.0
    values = np.maximum(sign * (prices - strike), 0.0)
    values[prices >= barrier] = 0.0
    for step in range(steps - 1, -1, -1):
        lo, hi = steps - step, steps + step + 1
        new = np.zeros_like(values)
        new[lo:hi] = np.exp(-rate * dt) * (
            pd * values[lo - 1 : hi - 1] + pm * values[lo:hi] + pu * values[lo + 1 : hi + 1]
        )
        alive = prices < barrier
        values = np.where(alive, new, 0.0)
    return values[steps]

ARGS = (101.3, 0.22)
