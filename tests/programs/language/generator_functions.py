"""Generators of the user's functions: consumed by loops, comprehensions, sums, lists and other generators."""

import numpy as np


def powers(x, count):
    power = np.ones_like(x)
    yield power
    for k in range(1, count):
        power = power * x / k
        yield power


def chosen(orders, x):
    """As packages write series of polynomials: the orders that are asked for."""
    previous, now, place = np.ones_like(x), x, 0
    if orders[place] == 0:
        yield previous
        place += 1
    if place == len(orders):
        return
    if orders[place] == 1:
        yield now
        place += 1
    for n in range(2, orders[-1] + 1):
        previous, now = now, ((2 * n - 1) * x * now - (n - 1) * previous) / n
        if orders[place] == n:
            yield now
            place += 1


def scaled(orders, x):
    factors = [1.0 / (n + 1.0) for n in orders]
    series = chosen(orders, x)
    k = 0
    for item in series:
        yield item * factors[k]
        k += 1


def both(x, y):
    yield from powers(x, 3)
    yield y
    yield from (y * y, x)


def pair(x):
    yield x * x
    yield np.sin(x)


def stores(x):
    row = np.zeros(3)
    for k in range(3):
        row[k] = x[k] * k
        yield row


def total(numbers):
    return sum(number * number for number in numbers)


def f(x, y):
    out = np.zeros((3, 3))
    for k, item in enumerate(powers(x, 3)):
        out[k] = item * y[k]
    first = 0.0
    for item in powers(y, 5):
        if item[0] > 5.0:
            break
        first = first + item.sum()

    def inner(scale):
        for number in y:
            yield number * scale

    stacked = np.array(list(scaled([0, 2, 3], x)))
    items = list(scaled([1, 2, 4], y))
    one, two = pair(x)
    pairs = [a @ b for a, b in zip(both(x, y), powers(y, 6))]
    return out, first, stacked, items[0] * one + items[1] * two + items[2], pairs, total(list(inner(x[0]))), list(stores(x)), list(both(y, x)), sum(powers(x, 4))


ARGS = (np.array([0.4, 0.9, 1.3]), np.array([0.7, 1.1, 0.5]))
