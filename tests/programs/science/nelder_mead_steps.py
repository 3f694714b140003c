"""A few steps of the simplex search of Nelder and Mead, with sorting of the corners by index."""
import numpy as np

def rosenbrock(p, a, b):
    return (a - p[0]) ** 2 + b * (p[1] - p[0] ** 2) ** 2

def f(simplex, a, b, steps=6):
    simplex = simplex.copy()
    values = np.array([rosenbrock(p, a, b) for p in simplex])
    for _ in range(steps):
        order = np.argsort(values)
        simplex, values = simplex[order], values[order]
        centre = simplex[:-1].mean(axis=0)
        worst = simplex[-1]
        reflected = centre + (centre - worst)
        fr = rosenbrock(reflected, a, b)
        if fr < values[0]:
            expanded = centre + 2.0 * (centre - worst)
            fe = rosenbrock(expanded, a, b)
            simplex[-1], values[-1] = (expanded, fe) if fe < fr else (reflected, fr)
        elif fr < values[-2]:
            simplex[-1], values[-1] = reflected, fr
        else:
            inner = centre + 0.5 * (worst - centre)
            fi = rosenbrock(inner, a, b)
            if fi < values[-1]:
                simplex[-1], values[-1] = inner, fi
            else:
                for k in range(1, len(simplex)):
                    simplex[k] = simplex[0] + 0.5 * (simplex[k] - simplex[0])
                    values[k] = rosenbrock(simplex[k], a, b)
    return values.min()

def ARGS():
    return np.array([[0.1, 0.2], [0.9, 0.3], [0.4, 1.1]]), 1.0, 10.0
