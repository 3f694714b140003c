"""Variables of the outer function that inner functions assign: counters, sums, arrays, from loops and branches."""

import numpy as np


def at_top(x, s):
    total, n = 0.0, 0

    def add(v):
        nonlocal total, n
        total += v * v
        n += 1

    def counter():
        at = 0

        def following():
            nonlocal at
            at += s
            return at

        return following

    first, second = counter(), counter()
    add(x[0])
    add(first() + first() * second())
    return total * n


def in_for(x, s):
    best = None
    moved = 0
    mean = 0
    buffer = np.zeros(3)

    def see(v):
        nonlocal best, moved, mean, buffer
        mean = 0.5 * mean + v
        buffer = buffer + mean * x
        if best is None or v > best:
            best = v
            moved += 1

    for v in x:
        see(v * s)
    return best * moved + mean + np.sum(buffer * buffer)


def in_while(x, s):
    calls = 0
    y = x[0]

    def rate(t, y):
        nonlocal calls
        calls += 1
        return s * t - y * x[1]

    def step(t):
        nonlocal y
        k = rate(t, y)
        y += 0.1 * rate(t + 0.05, y + 0.05 * k)

    t = 0.0
    while y > 0.5 and calls < 20:
        step(t)
        t += 0.1
    return y * calls


def in_branch(x, s):
    if s > 0.0:
        m = x[1]

    def scale():
        nonlocal m
        for _ in range(2):
            m = m * s

    def last(k):
        nonlocal m
        for m in (x[k], 2.0 * x[k]):
            pass

    if x[0] > 0.0:
        scale()
    else:
        last(2)
    return m * x[2]


def ARGS():
    return np.array([1.2, 0.7, 1.9]), 0.8
