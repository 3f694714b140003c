"""Predator and prey by the implicit midpoint rule with fixed-point iteration in each step."""


def f(prey, predator, a, b, c, d):
    dt = 0.1
    cost = 0.0
    for step in range(15):
        x, y = prey, predator
        for it in range(100):
            mx, my = 0.5 * (prey + x), 0.5 * (predator + y)
            nx = prey + dt * (a * mx - b * mx * my)
            ny = predator + dt * (c * mx * my - d * my)
            change = abs(nx - x) + abs(ny - y)
            x, y = nx, ny
            if change < 1e-14:
                break
        prey, predator = x, y
        cost += (prey - 1.0) ** 2 * dt
    return cost + predator


ARGS = (1.2, 0.7, 1.1, 0.6, 0.5, 0.9)
