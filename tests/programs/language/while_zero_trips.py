"""Loops whose condition is false at once leave everything as it was."""


def at_top(x, y):
    while x < 0.0:
        x = x * y
    return x * y


def in_for(x, y):
    s = x
    for i in range(3):
        while s < 0.5 * i - 10.0:
            s = s * y
        s = s + y
    return s * s


def in_while(x, y):
    n = 0
    while n < 2:
        k = 5
        while k < n:
            x = x * 100.0
            k += 1
        for j in range(n):
            x = x * y
        n += 1
    return x


def in_branch(x, y):
    if x > 0.0:
        for i in range(0):
            y = y * x
        for i in range(3, 1):
            y = y + 1.0
    return y * x


ARGS = (1.2, 0.7)
