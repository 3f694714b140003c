"""Survival times, some of them censored, under a Weibull law whose scale depends on covariates."""

import math

import numpy as np

def f(p, records):
    ll = 0.0
    for t, observed, covs in records:
        lam = math.exp(-sum(c * x for c, x in zip(p["coef"], covs)))
        z = (lam * t) ** p["shape"]
        ll -= z
        if observed:
            ll += math.log(p["shape"]) + p["shape"] * math.log(lam) + (p["shape"] - 1) * math.log(t)
    return ll

WRT = (0,)
ARGS = (
    {"shape": 1.5, "coef": np.array([0.2, 0.4])},
    [(2.0, 1, (1.0, 0.5)), (3.0, 0, (1.0, -0.2)), (0.7, 1, (1.0, 1.2))],
)
