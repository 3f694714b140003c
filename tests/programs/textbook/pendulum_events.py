"""A pendulum that loses energy at each swing past the bottom, found by sign change, until a number of passes."""
import math


def f(theta, length, loss):
    g = 9.81
    omega = 0.0
    t = 0.0
    dt = 0.01
    passes = 0
    while passes < 3:
        before = theta
        omega -= dt * g / length * math.sin(theta)
        theta += dt * omega
        t += dt
        if before * theta < 0:
            passes += 1
            fraction = before / (before - theta)
            omega *= 1.0 - loss * (1.0 + 0.1 * fraction)
            if abs(omega) < 0.05:
                break
    return t * theta + omega * omega


ARGS = (0.6, 1.1, 0.08)
