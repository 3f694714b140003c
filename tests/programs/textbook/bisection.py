"""Bisection, then one Newton step so that the root depends smoothly on the coefficients."""


def poly(c, x):
    return ((c[0] * x + c[1]) * x + c[2]) * x + c[3]


def dpoly(c, x):
    return (3 * c[0] * x + 2 * c[1]) * x + c[2]


def f(c, a, b):
    lo, hi = a, b
    fa = poly(c, lo)
    while hi - lo > 1e-8:
        mid = (lo + hi) / 2
        fm = poly(c, mid)
        if fa * fm <= 0:
            hi = mid
        else:
            lo, fa = mid, fm
    x = (lo + hi) / 2
    return x - poly(c, x) / dpoly(c, x)


ARGS = ([1.1, -0.3, 0.8, -2.0], 0.13, 2.0)
WRT = (0,)
TOL = 3e-7  # the midpoint is treated as a function of the bracket alone, so the Newton step is off by the bracket's width
