"""An age-structured population: Leslie matrix, harvest rule, growth rate by power iteration, generation time."""
import numpy as np


def f(fecundity, survival, effort, options=None):
    options = {"years": 12, "density": 0.01, **(options or {})}
    n = len(fecundity)
    L = np.diag(survival, k=-1)
    L[0] = fecundity
    v = np.ones(n) / n
    rate = 0.0
    for _ in range(60):
        w = L @ v
        new = w.sum()
        v = w / new
        if abs(new - rate) < 1e-13:
            rate = new
            break
        rate = new
    pop = v * 100.0
    catch = [0.0] * options["years"]
    for year in range(options["years"]):
        crowding = 1.0 / (1.0 + options["density"] * pop.sum())
        pop = L @ pop
        pop[0] *= crowding
        if pop[1:].sum() > 20.0:
            taken = effort * pop[1:]
            pop[1:] -= taken
            catch[year] = taken.sum()
    age = np.arange(n)
    generation = (age * v * fecundity).sum() / (v * fecundity).sum()
    return sum(c * 0.95**k for k, c in enumerate(catch)) + 10.0 * rate + generation


ARGS = (np.array([0.0, 1.2, 1.9, 0.8]), np.array([0.5, 0.6, 0.4]), 0.2)
