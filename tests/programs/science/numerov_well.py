"""Bound state of an anharmonic well: Numerov's method, a shooting secant on the energy."""
import math


def shoot(E, x_max, n, stiffness, quartic):
    h = 2.0 * x_max / n
    def k2(x):
        v = 0.5 * stiffness * x * x + quartic * x**4
        return 2.0 * (E - v)
    x = -x_max
    before, now = 0.0, 1e-4
    for i in range(1, n):
        x = -x_max + i * h
        a = 1.0 + h * h / 12.0 * k2(x + h)
        b = 2.0 * (1.0 - 5.0 * h * h / 12.0 * k2(x))
        c = 1.0 + h * h / 12.0 * k2(x - h)
        before, now = now, (b * now - c * before) / a
        if abs(now) > 1e6:
            now /= 1e6
            before /= 1e6
    return now


def f(stiffness, quartic):
    e0, e1 = 0.45, 0.6
    s0 = shoot(e0, 4.0, 60, stiffness, quartic)
    s1 = shoot(e1, 4.0, 60, stiffness, quartic)
    trips = 0
    while abs(e1 - e0) > 1e-12 and trips < 40:
        e2 = e1 - s1 * (e1 - e0) / (s1 - s0)
        e0, s0 = e1, s1
        e1, s1 = e2, shoot(e2, 4.0, 60, stiffness, quartic)
        trips += 1
        if not math.isfinite(e1):
            raise ArithmeticError(f"no state after {trips} trips")
    return e1


ARGS = (1.0, 0.05)
