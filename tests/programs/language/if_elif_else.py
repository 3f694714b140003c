"""Branches with elif and else, each writing the same names."""


def at_top(x, y):
    if x > 2.0:
        z = x * y
    elif x > 1.0:
        z = x + y * y
        y = y * 0.5
    else:
        z = x - y
    return z * y


def in_for(x, y):
    total = 0.0
    for k in range(5):
        if k == 0:
            total += x
        elif k < 3:
            total = total * y + k * x
        else:
            x = x * 0.9
            total -= x * y
    return total


def in_while(x, y):
    while x < 20.0:
        if y < 0.6:
            y = y + 0.3
        elif x < 5.0:
            x = x * (1.0 + y)
        else:
            x = x + x * y
    return x * y


def in_branch(x, y):
    if x > 0.0:
        if y > 1.0:
            x = x * 3.0
        else:
            if x > 1.4:
                y = y * x
            else:
                y = x
    return x + y * y


ARGS = (1.5, 0.4)
