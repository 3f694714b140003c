"""Beta-binomial log likelihood by math.lgamma, with optional over-dispersion."""
import math

def log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

def f(mu, rho=None, data=((3, 10), (7, 12), (0, 5), (4, 4))):
    total = 0.0
    for k, n in data:
        choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        if rho is None:
            total += choose + k * math.log(mu) + (n - k) * math.log1p(-mu)
        else:
            a, b = mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)
            total += choose + log_beta(k + a, n - k + b) - log_beta(a, b)
    return total



ARGS = (0.4, 0.2)
