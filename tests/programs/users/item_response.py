"""Marginal likelihood of a two-parameter test model with quadrature, missing answers, and scores afterwards."""

import numpy as np
from numpy.polynomial.hermite import hermgauss

ANSWERS = np.array(
    [
        [1, 1, 0, -1],
        [1, 0, 0, 0],
        [1, 1, 1, 1],
        [0, 1, -1, 0],
        [0, 0, 0, 0],
        [1, 1, 1, 0],
    ]
)


def probability(theta, slope, difficulty, guess=0.0):
    return guess + (1 - guess) / (1 + np.exp(-slope * (theta - difficulty)))


def person(answers, nodes, items):
    like = np.ones_like(nodes)
    for k, (slope, difficulty) in enumerate(items):
        if answers[k] < 0:
            continue
        p = probability(nodes, slope, difficulty)
        like = like * (p if answers[k] == 1 else 1 - p)
    return like


def score(answers, items, start=0.0):
    """Most likely ability with a normal prior, by Fisher scoring."""
    theta = start
    for _ in range(30):
        gradient, information = -theta, 1.0
        for k, (slope, difficulty) in enumerate(items):
            if answers[k] == -1:
                continue
            p = probability(theta, slope, difficulty)
            gradient += slope * (answers[k] - p)
            information += slope**2 * p * (1 - p)
        move = gradient / information
        theta += move
        if abs(move) < 1e-12:
            break
    return theta


def f(slopes, difficulties):
    x, w = hermgauss(15)
    nodes, weights = np.sqrt(2) * x, w / np.sqrt(np.pi)
    items = list(zip(slopes, difficulties))
    patterns, counts = np.unique(ANSWERS, axis=0, return_counts=True)
    total = 0.0
    for pattern, n in zip(patterns, counts):
        total -= n * np.log(weights @ person(pattern, nodes, items))
    abilities = [score(row, items) for row in ANSWERS]
    spread = np.std(abilities)
    return total + spread + 0.01 * np.sum(np.square(slopes))


ARGS = (np.array([1.2, 0.8, 1.5, 1.0]), [-0.5, 0.1, 0.4, 1.0])
UNCOMPILED = "np.unique along an axis"
