"""Products and factorizations of matrices."""

import math

import numpy as np

from benchmarks.spelling import Kernel, Spelling, spelled


def matvec_by_matmul(a, x):
    return np.sum(np.tanh(a @ x) ** 2)


def matvec_by_loops(a, x):
    total = 0.0
    for i in range(a.shape[0]):
        z = 0.0
        for j in range(a.shape[1]):
            z += a[i, j] * x[j]
        total += math.tanh(z) ** 2
    return total


def matvec_by_columns(a, x):
    z = np.zeros(a.shape[0])
    for j in range(a.shape[1]):
        z += a[:, j] * x[j]
    y = np.tanh(z)
    return y @ y


def matvec_by_column_loops(a, x):
    n, m = a.shape
    z = np.zeros(n)
    for j in range(m):
        for i in range(n):
            z[i] += a[i, j] * x[j]
    total = 0.0
    for i in range(n):
        total += math.tanh(z[i]) ** 2
    return total


def matvec_by_rows(a, x):
    y = np.empty(len(a))
    for i, row in enumerate(a):
        y[i] = np.tanh(np.dot(row, x))
    return np.sum(y * y)


def matvec_by_sums(a, x):
    return (np.tanh(np.sum(a * x, axis=1)) ** 2).sum()


def matvec_of_transposed(b, x):
    y = np.tanh(x @ b)
    return np.sum(y * y)


def matvec_args(n=2000):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)) / math.sqrt(n), rng.normal(size=n)


MATVEC = Kernel(
    matvec_args,
    (5,),
    (0, 1),
    spelled(
        *(matvec_by_matmul, matvec_by_loops, matvec_by_columns, matvec_by_column_loops, matvec_by_rows),
        matvec_by_sums,
        transposed=Spelling(
            matvec_of_transposed, lambda a, x: (np.ascontiguousarray(a.T), x), None, lambda b, x: (b.T, x)
        ),
    ),
)


def trisolv_by_dots(low, b):
    x = np.zeros_like(b)
    for i in range(b.size):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return np.sum(x * x)


def trisolv_by_loops(low, b):
    n = len(b)
    x = np.empty(n)
    for i in range(n):
        rest = b[i]
        for j in range(i):
            rest -= low[i, j] * x[j]
        x[i] = rest / low[i, i]
    total = 0.0
    for i in range(n):
        total += x[i] ** 2
    return total


def trisolv_by_columns(low, b):
    x = b.copy()
    for j in range(len(x)):
        x[j] /= low[j, j]
        x[j + 1 :] -= x[j] * low[j + 1 :, j]
    return x @ x


def trisolv_by_while(low, b):
    x = b.copy()
    i = 0
    total = 0.0
    while i < x.shape[0]:
        j = 0
        while j < i:
            x[i] -= low[i, j] * x[j]
            j += 1
        x[i] /= low[i, i]
        total += x[i] * x[i]
        i += 1
    return total


def trisolv_by_row(low, x, i):
    return (x[i] - np.sum(low[i, :i] * x[:i])) / low[i, i]


def trisolv_by_helper(low, b):
    x = b.copy()
    for i in range(len(b)):
        x[i] = trisolv_by_row(low, x, i)
    return (x**2).sum()


def trisolv_args(n=1000):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)) / n + np.eye(n), rng.normal(size=n)


TRISOLV = Kernel(
    trisolv_args,
    (6,),
    (0, 1),
    spelled(trisolv_by_dots, trisolv_by_loops, trisolv_by_columns, trisolv_by_while, trisolv_by_helper),
)

KERNELS = {"matvec": MATVEC, "trisolv": TRISOLV}
