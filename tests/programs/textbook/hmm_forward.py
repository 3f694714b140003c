"""Forward algorithm of a hidden Markov model, scaled; loops as in the textbook."""
import numpy as np


def f(initial, transition, emission, observations):
    n = len(initial)
    alpha = np.empty(n)
    loglik = 0.0
    for t, symbol in enumerate(observations):
        new = np.zeros(n)
        for j in range(n):
            if t == 0:
                new[j] = initial[j]
            else:
                for i in range(n):
                    new[j] += alpha[i] * transition[i, j]
            new[j] *= emission[j, symbol]
        scale = new.sum()
        loglik += np.log(scale)
        alpha = new / scale
    return loglik


def ARGS():
    return (
        np.array([0.6, 0.4]),
        np.array([[0.7, 0.3], [0.2, 0.8]]),
        np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]),
        np.array([0, 2, 1, 1, 2, 0]),
    )
