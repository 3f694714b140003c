"""Floyd-Warshall shortest paths: total distance between all pairs."""
import numpy as np


def f(weights):
    n = len(weights)
    dist = weights.copy()
    for i in range(n):
        dist[i, i] = 0.0
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = dist[i, k] + dist[k, j]
                if through < dist[i, j]:
                    dist[i, j] = through
    return dist.sum() + dist.max()


def ARGS():
    return (np.random.default_rng(17).uniform(0.5, 3.0, (4, 4)),)
