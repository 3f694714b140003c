"""The assignment expression, in conditions and inside expressions."""


def at_top(x, y):
    if (z := x * y) > 1.0:
        z = z * x
    w = (u := x + 1.0) * u
    return z + w * u


def in_for(x, y):
    s = 0.0
    for i in range(4):
        if (t := x * i) > 1.0:
            s += t * y
        else:
            s -= t
    return s + t


def in_while(x, y):
    while (r := x * x - y) > 0.01:
        x = x - 0.3 * r
    return x + r


def in_branch(x, y):
    if x > 1.0 and (d := x - y) > 0.0:
        x = d * d
    return x * y


ARGS = (1.8, 1.1)
