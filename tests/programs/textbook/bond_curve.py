"""Nelson-Siegel discounting of bonds given as dicts, and the sum of squared pricing errors."""
import math

BONDS = (
    {"coupon": 0.03, "years": 2, "price": 99.1},
    {"coupon": 0.05, "years": 4, "price": 103.2},
    {"coupon": 0.0, "years": 3, "price": 91.0},
)


def zero_rate(t, level, slope, curvature, tau):
    decay = (1 - math.exp(-t / tau)) / (t / tau)
    return level + slope * decay + curvature * (decay - math.exp(-t / tau))


def bond_price(bond, *curve):
    flows = [(t, 100 * bond["coupon"]) for t in range(1, bond["years"] + 1)]
    flows[-1] = (flows[-1][0], flows[-1][1] + 100.0)
    return sum(cash * math.exp(-t * zero_rate(t, *curve)) for t, cash in flows)


def f(curve):
    error = 0.0
    for bond in BONDS:
        error += (bond_price(bond, *curve) - bond["price"]) ** 2
    return error


ARGS = ((0.04, -0.02, 0.01, 1.7),)
