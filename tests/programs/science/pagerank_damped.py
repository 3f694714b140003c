"""PageRank by power iteration on lists of links until the change is small; dangling nodes share."""
import numpy as np

LINKS = [[1, 2], [2], [0], [0, 2], []]

def f(teleport, damping):
    n = len(LINKS)
    rank = np.full(n, 1.0 / n)
    jump = teleport / teleport.sum()
    change, it = 1.0, 0
    while change > 1e-2 and it < 50:
        new = (1 - damping) * jump
        for node, targets in enumerate(LINKS):
            if targets:
                share = damping * rank[node] / len(targets)
                for t in targets:
                    new[t] += share
            else:
                new += damping * rank[node] * jump
        change = np.abs(new - rank).sum()
        rank = new
        it += 1
    return rank @ np.arange(n) + 0.01 * it

ARGS = (np.array([1.0, 2.0, 0.5, 1.5, 0.7]), 0.85)
