"""Bouncing ball: steps until an event, bisection for its time, restitution, a maximal number of bounces."""
import math

def fly(h, v, dt, g):
    return h + v * dt - 0.5 * g * dt * dt, v - g * dt

def f(h, v, g, e, t_end=1.4):
    t, bounces = 0.0, 0
    while t < t_end and bounces < 3:
        dt = min(0.1, t_end - t)
        nh, nv = fly(h, v, dt, g)
        if nh < 0:
            disc = v * v + 2 * g * h
            dt = (v + math.sqrt(disc)) / g
            h, v = 0.0, -e * (v - g * dt)
            bounces += 1
        else:
            h, v = nh, nv
        t += dt
    else:
        h += 0.5 * v
    return h + 0.1 * v * v

ARGS = (0.7, 0.4, 9.81, 0.8)
