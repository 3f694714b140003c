"""Sphere tracing of a distance field with a small step limit; shading from the normal."""
import numpy as np


def distance(p, centre, radius):
    ball = np.linalg.norm(p - centre) - radius
    floor = p[1] + 1.0
    return min(ball, floor)


def f(centre, radius, light):
    brightness = 0.0
    for px in range(3):
        for py in range(2):
            direction = np.array([0.2 * (px - 1), 0.2 * (py - 0.9), 1.0])
            direction = direction / np.linalg.norm(direction)
            t = 0.0
            hit = False
            for _ in range(60):
                p = t * direction
                d = distance(p, centre, radius)
                if d < 1e-9:
                    hit = True
                    break
                t = t + d
                if t > 20.0:
                    break
            if not hit:
                continue
            if p[1] > -0.99:
                normal = (p - centre) / radius
            else:
                normal = np.array([0.0, 1.0, 0.0])
            brightness += max(0.0, normal @ light) / (1.0 + 0.1 * t * t)
    return brightness


def ARGS():
    return np.array([0.1, 0.05, 3.0]), 0.8, np.array([0.3, 0.6, -0.7])
