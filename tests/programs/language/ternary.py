"""The conditional expression, also nested and as an argument."""
import math


def at_top(x, y):
    a = x * y if x > y else x + y
    b = math.sin(x if y < 0.0 else y)
    return a * b + (x if x > 9.0 else y if y > 9.0 else x * x)


def in_for(x, y):
    s = 0.0
    for i in range(6):
        s += x * i if i % 2 == 0 else -y * s
    return s


def in_while(x, y):
    n = 0
    while n < 4:
        x = x * y if x < 3.0 else x - 1.0
        n = n + 1 if x < 100.0 else 4
    return x


def in_branch(x, y):
    if x > 1.0:
        y = y * y if y > 1.0 else y * x
    return y


ARGS = (2.5, 1.3)
