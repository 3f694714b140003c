"""Tau leaping of a predator, prey and their food with events that stop the simulation; draws are given."""
import numpy as np


def propensities(state, rates):
    prey, predator = state
    birth, eat, death = rates
    return np.array([birth * prey, eat * prey * predator, death * predator])


STOICHIOMETRY = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])


def f(rates, state, draws, tau):
    time = 0.0
    path = [state.copy()]
    for k in range(len(draws)):
        a = propensities(path[-1], rates)
        if not np.all(a > 0.0):
            break
        step = min(tau, 0.3 / np.max(a / path[-1].sum()))
        counts = a * step + np.sqrt(a * step) * draws[k]
        new = path[-1] + counts @ STOICHIOMETRY
        np.maximum(new, 0.05, out=new)
        path.append(new)
        time += step
    path = np.stack(path)
    return np.trapezoid(path[:, 0] * path[:, 1]) / time


WRT = ("rates", "state", "tau")


def ARGS():
    rng = np.random.default_rng(2)
    return np.array([0.9, 0.4, 0.7]), np.array([3.0, 1.5]), rng.normal(size=(9, 3)), 0.11
