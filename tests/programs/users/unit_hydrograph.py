"""Rain to runoff: snow by degree days, a cascade of leaking buckets, and the efficiency of the flow that follows."""

import numpy as np


def snow(rain, temp, ddf, tt=0.0):
    pack, out = 0.0, []
    for p, t in zip(rain, temp):
        if t < tt:
            pack += p
            out.append(0.0)
            continue
        melt = min(ddf * (t - tt), pack)
        pack -= melt
        out.append(p + melt)
    return np.array(out)


def route(inflow, k, n):
    stores = [0.0] * n
    flow = np.zeros_like(inflow)
    for day, q in enumerate(inflow):
        for i in range(n):
            stores[i] += q
            q = stores[i] / k
            stores[i] -= q
        flow[day] = q
    return flow


def efficiency(sim, obs, kind="nse"):
    if kind == "nse":
        return 1 - np.sum((sim - obs) ** 2) / np.sum((obs - obs.mean()) ** 2)
    r = np.corrcoef(sim, obs)[0, 1]
    return 1 - np.sqrt((r - 1) ** 2 + (sim.std() / obs.std() - 1) ** 2 + (sim.mean() / obs.mean() - 1) ** 2)


def f(ddf, k, rain):
    temp = np.array([-3.0, -1.0, 2.0, 4.0, 1.0, -2.0, 5.0, 6.0])
    obs = np.array([0.1, 0.2, 0.9, 1.8, 2.0, 1.4, 1.5, 2.2])
    sim = route(snow(rain, temp, ddf), k, 3)
    return efficiency(sim, obs) + efficiency(sim, obs, kind="kge")


ARGS = (1.7, 1.6, np.array([2.0, 3.0, 0.0, 1.0, 4.0, 2.0, 0.0, 1.5]))
