"""Chained comparisons evaluate the middle operand once."""


def at_top(x, y):
    if 0.0 < x <= y < 10.0:
        return x * y
    return x + y


def in_for(x, y):
    s = 0.0
    for i in range(10):
        if 2 <= i < 7 != 4:
            s += x**i * y
    return s


def in_while(x, y):
    while 0.1 < x < 50.0 > y:
        x = x * y
        y = y + 0.1
    return x + y


def in_branch(x, y):
    if x < y:
        if 1.0 < x < y < 2.0:
            y = y * x
        else:
            y = y / x
    return y


ARGS = (0.8, 1.9)
