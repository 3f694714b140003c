"""Closed queueing network by mean value analysis, with one station that has several servers."""

import numpy as np


SERVERS = (1, 2, 1)


def f(demands, think, customers=6):
    servers = SERVERS
    n = len(demands)
    queue = [0.0] * n
    history = {"throughput": [], "response": []}
    probabilities = {k: [1.0] + [0.0] * customers for k in range(n) if servers[k] > 1}
    for jobs in range(1, customers + 1):
        waits = []
        for k in range(n):
            if servers[k] == 1:
                waits.append(demands[k] * (1.0 + queue[k]))
            else:
                m = servers[k]
                idle = sum((m - 1 - j) * probabilities[k][j] for j in range(m - 1))
                waits.append(demands[k] / m * (1.0 + queue[k] + idle))
        response = sum(waits)
        x = jobs / (think + response)
        queue = [x * w for w in waits]
        for k, p in probabilities.items():
            m = servers[k]
            for j in range(jobs, 0, -1):
                p[j] = x * demands[k] / min(j, m) * p[j - 1]
            p[0] = 1.0 - sum(p[1 : jobs + 1])
        history["throughput"] += [x]
        history["response"] += [response]
    xs = np.array(history["throughput"])
    return xs[-1] + 0.01 * np.dot(history["response"], xs)


ARGS = (np.array([0.4, 0.7, 0.2]), 2.0)
