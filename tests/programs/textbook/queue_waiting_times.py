"""Lindley's recursion: waiting times of customers at several servers; each takes the server that is free first."""
import numpy as np


def f(arrivals, services, n_servers=2):
    free_at = np.zeros(n_servers)
    total_wait = 0.0
    longest = 0.0
    for arrival, service in zip(np.cumsum(arrivals), services):
        server = int(np.argmin(free_at))
        start = max(arrival, free_at[server])
        wait = start - arrival
        free_at[server] = start + service
        total_wait += wait
        if wait > longest:
            longest = wait
    return total_wait / len(services) + 0.1 * longest + 0.01 * max(free_at)


def ARGS():
    arrivals = np.array([0.3, 0.5, 0.2, 0.9, 0.1, 0.25, 0.4])
    return arrivals, np.array([1.4, 0.8, 1.1, 0.35, 1.9, 0.6, 0.7])
