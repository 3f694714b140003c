"""*args of the differentiated function."""


def f(x, *coefficients):
    s = 0.0
    for c in reversed(coefficients):
        s = s * x + c
    return s


ARGS = (1.3, 0.5, -0.7, 0.2)
WRT = (0,)
