"""Nelson-Siegel-Svensson yields against quotes, with the limit at zero maturity written as a branch."""
import math

def loading(tau, lam):
    x = tau / lam
    if x < 1e-8:
        return 1.0, 0.0
    a = (1.0 - math.exp(-x)) / x
    return a, a - math.exp(-x)

def f(beta, lam1, lam2):
    quotes = {0.0: 0.011, 0.5: 0.013, 2: 0.021, 5.0: 0.027, 10: 0.031}
    error = 0.0
    for maturity, quote in quotes.items():
        slope, hump = loading(maturity, lam1)
        _, hump2 = loading(maturity, lam2)
        model = beta[0] + beta[1] * slope + beta[2] * hump + beta[3] * hump2
        weight = 1.0 if maturity == 0 else 1.0 / maturity
        error += weight * (100.0 * (model - quote)) ** 2
    return error

ARGS = ([0.03, -0.02, 0.01, 0.005], 1.5, 4.0)
