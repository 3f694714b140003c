"""Reaction network from strings, tau leaping with fixed draws; stoichiometry parsed while it runs."""
import numpy as np

REACTIONS = ["A + B -> C", "C -> A + B", "C -> D + B"]

def parse(text):
    left, right = text.split(" -> ")
    return left.split(" + "), right.split(" + ")

def f(rates, start, normals):
    names = list(start)
    x = dict(start)
    tau = 0.05
    for z in normals:
        props = []
        for rate, text in zip(rates, REACTIONS):
            reactants, _ = parse(text)
            a = rate
            for r in reactants:
                a *= x[r]
            props.append(a)
        for (text, a), zk in zip(zip(REACTIONS, props), z):
            count = a * tau + np.sqrt(max(a * tau, 1e-12)) * zk
            reactants, products = parse(text)
            for r in reactants:
                x[r] -= count
            for p in products:
                x[p] += count
        for name in names:
            x[name] = max(x[name], 0.0)
    return x["D"] ** 2 + 0.1 * sum(x.values())

rng = np.random.default_rng(1)
ARGS = ((0.05, 0.3, 0.4), {"A": 20.0, "B": 15.0, "C": 5.0, "D": 2.0}, rng.normal(size=(6, 3)))
WRT = ("rates", "start")
