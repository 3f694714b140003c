"""Arrays: the lowered program does what plain Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering import agree

X = np.array([0.5, -1.5, 2.0, 0.25, -0.75])
M = np.arange(12.0).reshape(3, 4) * 0.5 - 2.0


def indexing(m, i):
    return (
        m[1, 2],
        m[-1][0],
        m[i],
        m[:, 1],
        m[1:, ::2],
        m[..., -1],
        m[None, 1],
        m[:, None, i].shape,
        m[::-1, 1:3],
        m[i, 1:][0],
        m[[0, 2]],
        m[m > 0.0],
        m[np.array([0, 1]), np.array([2, 3])],
        m[1, np.array([3, 0])],
    )


def stores(m, x):
    m[0, 0] = x
    m[1] = 2.0
    m[:, 1] += m[:, 0]
    m[2, ::2] *= 3.0
    m[m > 1.0] -= 0.5
    m[[0, 2], 3] = [7.0, 8.0]
    m[0][1] = -1.0
    m[...] /= 2.0
    m.T[3, 1] = 9.0
    return m.sum()


def overlaps(x):
    x[1:] += x[:-1]
    x[:-1] = x[1:]
    x[::-1] = x
    v = x[1:4]
    v *= 2.0
    x += x
    return x


def overlap_of_matrix(m):
    square = m[:, :3]
    square += square.T
    return square


def repeated_index(x):
    idx = np.array([0, 0, 2])
    x[idx] += 1.0
    np.add.at(x, idx, 0.5)
    np.subtract.at(x, 3, 1.0)
    return x


def views_are_shared(x):
    a = x
    b = a.reshape(1, 5)
    b[0, 1] = 10.0
    c = x.copy()
    c[0] = -5.0
    flat = b.ravel()
    flat[2] = 20.0
    return x, c


def attributes(m):
    return m.shape, m.ndim, m.size, m.T, m.dtype == np.float64, m.shape[0] * 2, len(m), m[0].size


def methods(m, x):
    filled = np.empty(3)
    filled.fill(2.0)
    ordered = x.copy()
    ordered.sort()
    return (
        m.sum(axis=0),
        m.mean(),
        m.max(1),
        m.reshape(4, 3),
        m.reshape((2, -1)),
        m.flatten(),
        m.transpose(),
        m.dot(m.T),
        m.astype(np.float32),
        x.cumsum(),
        x.argmax(),
        x.clip(0.0, 1.0),
        filled,
        ordered,
        x.item(1),
        m.any(axis=0),
    )


def library(m, x):
    out = np.zeros(5)
    np.add(x, 1.0, out=out)
    return (
        np.where(x > 0.0, x, 0.0),
        np.maximum(x, 0.5),
        np.stack([x, x * 2.0]),
        np.concatenate((x, x[:2]), axis=0),
        np.outer(x, x),
        np.linalg.norm(x),
        np.sum(m, 0),
        np.sum([x[0], 2.0]),
        np.dot([1.0, 2.0], x[:2]),
        np.add.reduce(m),
        np.zeros_like(m),
        np.full((2, 2), x[0]),
        np.arange(x.size),
        np.linspace(0.0, x[0], 4),
        out,
        np.array([[x[0], 1.0], [x[1], x[2]]]),
        np.split(x[:4], 2),
        np.float64(2.0) * x[0],
        np.pi,
    )


def single_precision(x):
    s = 0.0
    for v in x:
        s = s + v * 2.0
    return s, x * 2.0, np.float32(3.0) * s, x[0] * np.float64(2.0)


def integers(idx, x):
    total = 0
    for i in idx:
        total += i
    idx[0] = 2.7
    idx[1] += 1
    return total, x[idx[0]], idx // 2, idx / 2, -idx[0] % 3


def zero_dimensional(a):
    a[...] = a * 2.0
    b = a + 1.0
    return a[()], b


PROGRAMS: list[tuple[Any, ...]] = [
    (indexing, M, 1),
    (stores, M, 0.5),
    (overlaps, X),
    (overlap_of_matrix, M),
    (repeated_index, X),
    (views_are_shared, X),
    (attributes, M),
    (methods, M, X),
    (library, M, X),
    (single_precision, X.astype(np.float32)),
    (integers, np.array([3, 1, 0]), X),
    (zero_dimensional, np.array(2.0)),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_does_what_python_does(program: tuple[Any, ...]) -> None:
    func, *args = program
    agree(func, *args)
