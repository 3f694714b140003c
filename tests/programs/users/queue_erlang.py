"""Staffing of a call centre: Erlang's formula by recursion, cost with a while loop that adds agents."""

import math


def erlang_b(load, servers):
    inv = 1.0
    for k in range(1, servers + 1):
        inv = 1.0 + inv * k / load
    return 1.0 / inv


def erlang_c(load, servers):
    if servers <= load:
        return 1.0
    b = erlang_b(load, servers)
    rho = load / servers
    return b / (1 - rho * (1 - b))


def service_level(arrivals, handling, servers, patience=20.0):
    load = arrivals * handling
    if load >= servers:
        return 0.0
    return 1 - erlang_c(load, servers) * math.exp(-(servers - load) * patience / handling)


def f(profile, handling, wage):
    cost = 0.0
    shortfalls = []
    for hour, rate in enumerate(profile):
        n = max(int(rate * handling), 1)
        while service_level(rate, handling, n) < 0.8 and n < 60:
            n += 1
        level = service_level(rate, handling, n)
        wait = erlang_c(rate * handling, n) * handling / (n - rate * handling)
        surge = 1.5 if hour in (0, len(profile) - 1) else 1.0
        cost += surge * wage * n + 0.1 * wait * rate
        shortfalls.append(1.0 - level)
    return cost + 10.0 * max(shortfalls) + 5.0 * sum(s for s in shortfalls if s > 0.1)


ARGS = ([0.05, 0.11, 0.08], 180.0, 20.0)
