"""A million steps of a scalar recurrence: the traffic to and from the tape."""

FIRST, GOAL = 2.0, 1.8
WRT = (0, 1)


def f(x, r, steps):
    for _ in range(steps):
        x = r * x * (1.0 - x)
    return x


def args(steps=1_000_000):
    return 0.31, 2.9, steps


def small():
    return args(12)
