"""The number of trips depends on the values."""
import math


def at_top(x, tol):
    guess = x
    while abs(guess * guess - x) > tol:
        guess = 0.5 * (guess + x / guess)
    return guess * x


def in_for(x, tol):
    total = 0.0
    for k in range(4):
        y = x + k
        while y > 1.0:
            y = y / 3.0
            total += math.sin(y)
    return total


def in_while(x, tol):
    outer = 0
    while outer < 3:
        term = x
        n = 1
        while abs(term) > 0.05:
            term = term * 0.5 / n
            n += 1
            x = x + term
        outer += 1
    return x


def in_branch(x, tol):
    if x > 1.0:
        while x > 1.0:
            x = x * 0.7
    else:
        while x < 1.0:
            x = x * 1.3
    return x * x


ARGS = (5.0, 1e-14)
WRT = (0,)
