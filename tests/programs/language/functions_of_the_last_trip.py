"""Functions that a loop makes and something behind the loop calls, with what they hold of the last trip."""

import numpy as np

import tapegen as tg


def line(slope, offset=2.0):
    shifted = slope * offset
    return lambda u: shifted * u + slope


def after(first, second):
    return lambda u: second(first(u))


def summing(start):
    held = np.zeros(3)
    held[0] = start

    def add(u):
        held[1] += u
        return held.sum()

    return add


def cost_of(start, horizon):
    def cost(u):
        place, total = start, 0.0
        for k in range(horizon):
            place = place + u[k]
            total = total + place * place
        return total

    return cost


def f(x, n):
    u = x
    for k in range(n):
        g = line(u)
        u = g(u) * 0.3
    total = g(u)
    k = 0
    while True:
        both, functions = after(line(x * (k + 1)), line(x)), {"square": line(x * x)}
        k += 1
        if k > n:
            break
    total += both(0.3) * functions["square"](2.0)
    for k in range(n):
        add = summing(x * (k + 1))
        add(x)
    total += add(x * x) + add(1.0)
    place, plan = x, np.zeros(2)
    for _ in range(n):
        cost = cost_of(place, len(plan))
        plan = plan - 0.1 * tg.grad(cost)(plan)
        place = place + plan[0]
    return total + cost(plan)


ARGS = (0.4, 3)
