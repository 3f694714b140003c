"""Two cyclic sweeps of Jacobi rotations on a symmetric matrix, in place."""
import math

import numpy as np


def f(m):
    a = (m + m.T) / 2
    n = a.shape[0]
    for sweep in range(2):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) < 1e-12:
                    continue
                theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta**2 + 1.0))
                c = 1.0 / math.sqrt(t**2 + 1.0)
                s = t * c
                for k in range(n):
                    akp, akq = a[k, p], a[k, q]
                    a[k, p] = c * akp - s * akq
                    a[k, q] = s * akp + c * akq
                for k in range(n):
                    apk, aqk = a[p, k], a[q, k]
                    a[p, k] = c * apk - s * aqk
                    a[q, k] = s * apk + c * aqk
    values = np.sort(np.diag(a))
    return values[0] + 2.0 * values[1] ** 2 + a[0, 2]


def ARGS():
    return (np.array([[2.0, 0.4, 0.1], [0.5, 1.2, 0.3], [0.2, 0.6, 0.7]]),)
