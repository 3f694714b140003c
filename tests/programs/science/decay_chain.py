"""Nuclides that decay along a chain with branches: a table of nuclides as a dict of dicts, activities over time."""

import math

NUCLIDES = {
    "Ra": {"half": 3.66, "to": {"Rn": 1.0}},
    "Rn": {"half": 0.64, "to": {"Pb": 0.98, "Bi": 0.02}},
    "Pb": {"half": 10.6, "to": {"Bi": 1.0}},
    "Bi": {"half": 1.01, "to": {}},
}


def derivative(amounts, rates):
    change = dict.fromkeys(amounts, 0.0)
    for name, entry in NUCLIDES.items():
        lost = rates[name] * amounts[name]
        change[name] -= lost
        for child, share in entry["to"].items():
            change[child] += share * lost
    return change


def f(amounts, scale, hours=3.0, steps=6):
    rates = {name: scale * math.log(2) / NUCLIDES[name]["half"] for name in NUCLIDES}
    dt = hours / steps
    dose = 0.0
    for _ in range(steps):
        k1 = derivative(amounts, rates)
        half = {n: amounts[n] + 0.5 * dt * k1[n] for n in amounts}
        k2 = derivative(half, rates)
        amounts = {n: a + dt * k2[n] for n, a in amounts.items()}
        dose += dt * max(rates[n] * a for n, a in amounts.items())
    return {"dose": dose, **amounts}


ARGS = ({"Ra": 100.0, "Rn": 5.0, "Pb": 1.0, "Bi": 0.5}, 1.1)
