"""Mean-field magnetisation of an Ising chain by damped iteration until nothing moves."""
import numpy as np


def f(coupling, field, temperature):
    n = len(field)
    m = np.full(n, 0.1)
    while True:
        worst = 0.0
        for i in range(n):
            local = field[i]
            if i > 0:
                local += coupling * m[i - 1]
            if i + 1 < n:
                local += coupling * m[i + 1]
            new = np.tanh(local / temperature)
            worst = max(worst, abs(new - m[i]))
            m[i] = 0.3 * m[i] + 0.7 * new
        if worst < 1e-13:
            break
    return np.mean(m) - 0.1 * np.sum(m * field)


def ARGS():
    return 0.4, np.array([0.3, -0.1, 0.2, 0.05]), 1.1
