"""Price of an Asian option by Monte Carlo: the sums of a path are all that its derivatives need."""

import math

from benchmarks.hand import by_hand


@by_hand
def hand(spot, rate, volatility, noise):
    paths, steps = noise.shape
    dt = 1.0 / steps
    root = math.sqrt(dt)
    drift = (rate - 0.5 * volatility * volatility) * dt
    total, spot_bar, rate_bar, volatility_bar = 0.0, 0.0, 0.0, 0.0
    for p in range(paths):
        s, mean, by_rate, by_volatility, level = spot, 0.0, 0.0, 0.0, 0.0
        for t in range(steps):
            level += noise[p, t]
            s *= math.exp(drift + volatility * root * noise[p, t])
            mean += s
            by_rate += s * (t + 1) * dt
            by_volatility += s * (root * level - volatility * (t + 1) * dt)
        mean /= steps
        if mean > 100.0:
            total += mean - 100.0
            spot_bar += mean / spot
            rate_bar += by_rate / steps
            volatility_bar += by_volatility / steps
    discount = math.exp(-rate) / paths
    return discount * total, (discount * spot_bar, discount * (rate_bar - total), discount * volatility_bar)
