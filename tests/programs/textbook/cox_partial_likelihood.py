"""Negative log partial likelihood of Cox's proportional hazards, with Breslow's ties and a ridge."""
import numpy as np


def f(beta, covariates, times, events, ridge):
    order = np.argsort(-times)
    eta = covariates[order] @ beta
    died = events[order]
    sorted_times = times[order]
    total = 0.0
    risk = 0.0
    i = 0
    n = len(eta)
    while i < n:
        j = i
        deaths = 0
        while j < n and sorted_times[j] == sorted_times[i]:
            risk += np.exp(eta[j])
            if died[j]:
                total += eta[j]
                deaths += 1
            j += 1
        if deaths > 0:
            total -= deaths * np.log(risk)
        i = j
    return -total + ridge * np.dot(beta, beta)


WRT = ("beta", "covariates", "ridge")


def ARGS():
    rng = np.random.default_rng(8)
    times = np.array([3.0, 1.0, 4.0, 4.0, 2.0, 1.0])
    return np.array([0.4, -0.7]), rng.normal(size=(6, 2)), times, np.array([True, True, False, True, True, False]), 0.1
