"""Prices of call options: the derivatives by spot, strike and the others in closed form, in the loop of the prices."""

import math

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(spot, strike, maturity, rate, volatility):
    n = spot.size
    spot_bar, strike_bar, maturity_bar = np.empty(n), np.empty(n), np.empty(n)
    total, rate_bar, volatility_bar = 0.0, 0.0, 0.0
    for i in range(n):
        s, k, t = spot[i], strike[i], maturity[i]
        root = math.sqrt(t)
        spread = volatility * root
        d1 = (math.log(s / k) + (rate + 0.5 * volatility * volatility) * t) / spread
        d2 = d1 - spread
        below1 = 0.5 + 0.5 * math.erf(d1 * 0.7071067811865476)
        below2 = 0.5 + 0.5 * math.erf(d2 * 0.7071067811865476)
        discounted = k * math.exp(-rate * t)
        vega = s * 0.3989422804014327 * math.exp(-0.5 * d1 * d1)
        total += s * below1 - discounted * below2
        spot_bar[i] = below1
        strike_bar[i] = -(discounted / k) * below2
        maturity_bar[i] = 0.5 * vega * volatility / root + rate * discounted * below2
        rate_bar += t * discounted * below2
        volatility_bar += vega * root
    return total, (spot_bar, strike_bar, maturity_bar, rate_bar, volatility_bar)
