"""Fit counts of many sensors whose data lie in parts on the workers of a dask cluster.

Each sensor counts what passes in an hour; the rate has a daily wave, a trend and an effect of the temperature. The
likelihood is a sum over all hours. Each worker differentiates it on the parts that it holds, and the gradients are
added up on the cluster: only parameters and gradients travel.

Run it: `python examples/fit_dask.py`. It starts a cluster on this machine; pass the address of another one as argument.
"""

from __future__ import annotations

import sys

import dask.array as da
import numpy as np
from distributed import Client
from scipy.optimize import minimize

import tapegen.distributed as td

HOURS = 40_000
PART = 5_000
NAMES = ("level", "wave", "phase", "trend", "warmth")
TRUE = np.array([1.2, 0.6, 0.8, 0.3, 0.5])


def rate(p, hour, temperature):
    """Expected counts in an hour."""
    wave = p[1] * np.cos(2.0 * np.pi * hour / 24.0 - p[2])
    return np.exp(p[0] + wave + p[3] * hour / HOURS + p[4] * temperature)


def loss(p, part):
    """The negative logarithm of the likelihood of Poisson counts, without its constant."""
    expected = rate(p, part["hour"], part["temperature"])
    return np.sum(expected - part["count"] * np.log(expected))


def measurements():
    """Counts of all hours, in parts."""
    rng = np.random.default_rng(0)
    hour = np.arange(float(HOURS))
    temperature = rng.normal(0.0, 0.5, HOURS)
    count = rng.poisson(rate(TRUE, hour, temperature)).astype(float)
    columns = {"hour": hour, "temperature": temperature, "count": count}
    return {name: da.from_array(column, chunks=PART) for name, column in columns.items()}


def main(client):
    """The parameters of the largest likelihood, and the errors in units of their standard errors."""
    data = {name: client.persist(array) for name, array in measurements().items()}  # they stay on the workers
    total = td.value_and_grad(loss, client)
    start = np.array([1.0, 0.1, 0.0, 0.0, 0.0])
    found = minimize(lambda p: total(p, data), start, jac=True, method="BFGS", options={"gtol": 0.1})
    deviations = np.sqrt(np.diag(found.hess_inv))
    for name, value, deviation, true in zip(NAMES, found.x, deviations, TRUE):
        print(f"{name:8} {value:7.4f} +- {deviation:.4f}  (true: {true})")
    return {"worst": float(np.max(np.abs(found.x - TRUE))), "evaluations": found.nfev}


if __name__ == "__main__":
    with Client(*sys.argv[1:], **({} if sys.argv[1:] else {"n_workers": 2, "dashboard_address": ":0"})) as cluster:
        main(cluster)
