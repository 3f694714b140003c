"""Black-Scholes price and implied volatility by Newton's method, safeguarded by bisection."""
from math import erf, exp, log, pi, sqrt


def norm_cdf(x):
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


def call_price(spot, strike, rate, vol, time):
    d1 = (log(spot / strike) + (rate + vol**2 / 2) * time) / (vol * sqrt(time))
    d2 = d1 - vol * sqrt(time)
    return spot * norm_cdf(d1) - strike * exp(-rate * time) * norm_cdf(d2), spot * sqrt(time) * exp(-d1**2 / 2) / sqrt(2 * pi)


def f(price, spot, strike, rate, time, tol=1e-13):
    lo, hi = 1e-4, 4.0
    vol = 0.3
    for iteration in range(60):
        value, vega = call_price(spot, strike, rate, vol, time)
        diff = value - price
        if abs(diff) < tol:
            break
        if diff > 0:
            hi = vol
        else:
            lo = vol
        step = vol - diff / vega
        vol = step if lo < step < hi else (lo + hi) / 2
    return vol


ARGS = (11.3, 100.0, 105.0, 0.03, 0.9)
