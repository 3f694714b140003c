"""SABR implied volatilities by Hagan's formula, and a calibration error over a smile."""
import math


def sabr(F, K, T, alpha, beta, rho, nu):
    if abs(F - K) < 1e-12:
        z_over_x = 1.0
        mid = F
    else:
        mid = math.sqrt(F * K)
        z = nu / alpha * mid ** (1 - beta) * math.log(F / K)
        x = math.log((math.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
        z_over_x = z / x
    one = 1 - beta
    logm = math.log(F / K)
    denominator = mid**one * (1 + one**2 / 24 * logm**2 + one**4 / 1920 * logm**4)
    correction = 1 + T * (one**2 / 24 * alpha**2 / mid ** (2 * one) + rho * beta * nu * alpha / 4 / mid**one
                          + (2 - 3 * rho**2) / 24 * nu**2)
    return alpha / denominator * z_over_x * correction


def f(params, F):
    quotes = {0.02: 0.32, 0.025: 0.28, 0.03: 0.26, 0.035: 0.27, 0.04: 0.29}
    error = 0.0
    for strike, vol in quotes.items():
        error += (sabr(F, strike, 2.0, **params) - vol) ** 2
    return math.sqrt(error / len(quotes))


ARGS = ({"alpha": 0.045, "beta": 0.5, "rho": -0.2, "nu": 0.5}, 0.031)
