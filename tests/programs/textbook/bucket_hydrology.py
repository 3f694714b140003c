"""A rainfall-runoff bucket model: overflow, evaporation limited by what is there, slow drainage."""
import numpy as np


def f(params, rain, pet, observed):
    capacity, drainage, split = params["capacity"], params["drainage"], params["split"]
    soil, ground = 0.4 * capacity, 1.0
    flow = np.zeros(len(rain))
    for day in range(len(rain)):
        soil += rain[day]
        quick = 0.0
        if soil > capacity:
            quick = soil - capacity
            soil = capacity
        evaporation = min(pet[day] * soil / capacity, soil)
        soil -= evaporation
        percolation = split * max(soil - 2.0, 0.0)
        soil -= percolation
        ground += percolation
        base = drainage * ground
        ground -= base
        flow[day] = quick + base
    return 1.0 - np.sum((flow - observed) ** 2) / np.sum((observed - observed.mean()) ** 2)


def ARGS():
    rain = np.array([0.0, 5.0, 3.0, 0.0, 0.0, 8.0, 1.0, 0.0])
    pet = np.array([1.0, 0.8, 0.9, 1.2, 1.1, 0.7, 0.9, 1.3])
    observed = np.array([0.1, 0.4, 1.5, 0.6, 0.4, 3.8, 1.2, 0.7])
    return {"capacity": 9.3, "drainage": 0.12, "split": 0.2}, rain, pet, observed


WRT = ("params",)
