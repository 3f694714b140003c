"""Small programs that store through a result that may be a view, or through the array it was made of.

Each maker is a text that makes `r` of `m`; a program stores on one side or on none, and reads both.  What plain Python
leaves is what counts: the value, the caller's array, the exception; gradients are compared with differences.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapegen as tg
from tapegen.errors import PerformanceWarning, TapegenError
from tests.sources import define

MAKERS: dict[int, tuple[str, ...]] = {
    1: (
        "r = np.reshape(m, (2, -1))",
        "r = m.reshape(-1, 2)",
        "r = m.reshape(-1)",
        "r = np.ravel(m)",
        "r = m.flat[1:]",
        "r = m.flat[:]",
        "r = m.flat[[0, 1]]",
        "r = m.flatten()",
        "r = np.expand_dims(m, 0)",
        "r = m[:, None]",
        "r = np.squeeze(m)",
        "r = np.atleast_1d(m)",
        "r = np.atleast_2d(m)",
        "r = np.atleast_3d(m)",
        "r = np.flip(m)",
        "r = m[::-1]",
        "r = np.asarray(m)",
        "r = np.asanyarray(m)",
        "r = np.array(m, copy=False)",
        "r = np.array(m, copy=None)",
        "r = np.array(m)",
        "r = np.array(m, ndmin=2)",
        "r = np.array(m, copy=None, ndmin=2)",
        "r = np.asarray(m, copy=True)",
        "r = np.asarray(m, dtype=float)",
        "r = np.asarray(m, np.float64)",
        "r = np.ascontiguousarray(m)",
        "r = np.asfortranarray(m)",
        "r = np.require(m, requirements='C')",
        "r = np.asarray_chkfinite(m)",
        "r = np.broadcast_to(m, (2, len(m)))",
        "r = np.broadcast_arrays(m, np.zeros((2, 1)))[0]",
        "r, q = np.broadcast_arrays(m, m)",
        "r = np.roll(m, 0)",
        "r = np.real(m)",
        "r = np.imag(m)",
        "r = np.conj(m)",
        "r = m.real",
        "r = m.imag",
        "r = m.conj()",
        "r = np.real_if_close(m)",
        "r = m.T",
        "r = np.transpose(m)",
        "r = np.swapaxes(m, 0, 0)",
        "r = np.moveaxis(m, 0, 0)",
        "r = np.einsum('i->i', m)",
        "r = np.diag(m)",
        "r = np.diagflat(m)",
        "r, q = np.split(m, 2)",
        "r, q = np.array_split(m, 2)",
        "q, r = np.array_split(m, 2)",
        "r, = np.split(m, 1)",
        "r = np.split(m, [1])[1]",
        "r, q = np.hsplit(m, 2)",
        "r = np.delete(m, 0)",
        "r = np.insert(m, 0, 1.0)",
        "r = np.append(m, 1.0)",
        "r = np.delete(m, [])",
        "r = np.unique(m)",
        "r = np.compress([True, False, True], m)",
        "r = np.extract(m > 0.2, m)",
        "r = np.take(m, [0, 1])",
        "r = m[np.array([0, 1])]",
        "r = m[m > 0.2]",
        "r = np.copy(m)",
        "r = m.copy()",
        "r = m.astype(float)",
        "r = m.astype(float, copy=False)",
        "r = np.astype(m, float, copy=False)",
        "r = np.nan_to_num(m, copy=False)",
        "r = np.nan_to_num(m)",
        "r = np.trim_zeros(m)",
        "r = np.sort(m)",
        "r = np.positive(m)",
        "r = np.lib.stride_tricks.sliding_window_view(m, 2)",
        "r = m.view()",
        "r = np.repeat(m, 1)",
        "r = np.tile(m, 1)",
        "r = np.clip(m, -9.0, 9.0)",
        "r = np.concatenate((m,))",
        "r = np.hstack((m,))",
        "r = np.stack((m,))",
        "r = np.resize(m, m.shape)",
        "r = np.pad(m, 0)",
        "r = np.diff(m, n=0)",
        "r = np.triu(np.outer(m, m))[0]",
        "r = np.float64(m)",
        "r = np.where(m > -99.0, m, 0.0)",
        "r = np.choose(0, (m, m))",
        "r = np.select([m > -99.0], [m])",
        "r = np.meshgrid(m, m)[0]",
        "r = np.meshgrid(m, m, copy=False)[0]",
        "r = np.ix_([0, 1])[0] * m[:2]",
        "r = np.ediff1d(m)",
        "r = np.nditer(m)",
        "r = m.take([0, 1])",
        "r = m.squeeze()",
        "r = m.clip(-9.0, 9.0)",
        "r = m.diagonal() if m.ndim > 1 else m",
        "r = np.unwrap(m, period=99.0)",
        "r = np.partition(m, 1)",
        "r = np.fft.fftshift(m)",
        "r = m[...]",
        "r = m[()]",
        "r = m[None]",
        "r = m[:0]",
        "r = list(m)[0] * m",
        "r, *q = m.reshape(2, -1)",
        "r = next(iter(m.reshape(2, -1)))",
    ),
    2: (
        "r = m.T",
        "r = m.mT",
        "r = np.transpose(m)",
        "r = np.transpose(m, (1, 0))",
        "r = m.transpose()",
        "r = m.transpose(0, 1)",
        "r = np.permute_dims(m, (1, 0))",
        "r = np.matrix_transpose(m)",
        "r = np.linalg.matrix_transpose(m)",
        "r = np.swapaxes(m, 0, 1)",
        "r = m.swapaxes(0, 1)",
        "r = np.moveaxis(m, 0, 1)",
        "r = np.rollaxis(m, 1)",
        "r = np.reshape(m, (-1,))",
        "r = m.reshape(-1)",
        "r = m.reshape(-1, order='F')",
        "r = m.reshape(m.shape)",
        "r = m.reshape(m.shape + (1,))",
        "r = m.reshape(m.shape[::-1])",
        "r = np.reshape(m, (-1,), copy=True)",
        "r = np.ravel(m)",
        "r = m.ravel()",
        "r = np.ravel(m, order='F')",
        "r = np.ravel(m, 'K')",
        "r = m.flatten()",
        "r = m.flatten('F')",
        "r = m.flat[1:]",
        "r = m.flat[:]",
        "r = np.squeeze(m)",
        "r = np.expand_dims(m, 1)",
        "r = m[:, None]",
        "r = np.diagonal(m)",
        "r = m.diagonal(1)",
        "r = np.linalg.diagonal(m)",
        "r = np.diag(m)",
        "r = np.einsum('ii->i', m)",
        "r = np.einsum('ij->ji', m)",
        "r = np.einsum('ij->ij', m)",
        "r = np.broadcast_to(m, (2,) + m.shape)",
        "r = np.broadcast_to(m, m.shape)",
        "r, q = np.broadcast_arrays(m, m)",
        "r = np.flip(m)",
        "r = np.flip(m, 0)",
        "r = np.flipud(m)",
        "r = np.fliplr(m)",
        "r = np.rot90(m)",
        "r = np.rot90(m, 2)",
        "r = np.rot90(m, 0)",
        "r = np.rot90(m, 4)",
        "r, q, z = np.split(m, 3)",
        "q, r = np.array_split(m, 2)",
        "r, q, z = np.hsplit(m, 3)",
        "r, q, z = np.vsplit(m, 3)",
        "r = np.dsplit(m[:, :, None], 1)[0]",
        "r, q, z = np.unstack(m)",
        "q, r, z = np.unstack(m, axis=1)",
        "r, q, z = m",
        "r = np.unstack(m)[1]",
        "r = np.atleast_1d(m)",
        "r = np.atleast_2d(m)",
        "r = np.atleast_3d(m)",
        "r = np.asarray(m)",
        "r = np.asarray(m, order='C')",
        "r = np.asarray(m, order='F')",
        "r = np.asanyarray(m)",
        "r = np.ascontiguousarray(m)",
        "r = np.asfortranarray(m)",
        "r = np.require(m, requirements='F')",
        "r = np.array(m, copy=False)",
        "r = np.array(m, copy=None, order='F')",
        "r = np.array(m, order='F')",
        "r = np.array(m, copy=None, order='A')",
        "r = np.array(m, copy=None, order='C', ndmin=3)",
        "r = np.asarray(m, order='K')",
        "r = np.real(m)",
        "r = m.real",
        "r = np.conj(m)",
        "r = m.conj()",
        "r = m.astype(float, copy=False)",
        "r = m.astype(float, order='F', copy=False)",
        "r = np.nan_to_num(m, copy=False)",
        "r = np.lib.stride_tricks.sliding_window_view(m, (2, 2))",
        "r = np.roll(m, 0)",
        "r = np.roll(m, 0, axis=0)",
        "r = np.triu(m)",
        "r = np.tril(m, 9)",
        "r = np.delete(m, 0, axis=0)",
        "r = np.compress([True, True, True], m, axis=0)",
        "r = np.take(m, 0, axis=0)",
        "r = m.take(1, axis=1)",
        "r = np.sum(m, axis=())",
        "r = np.diff(m, n=0)",
        "r = np.linalg.matrix_power(m, 1)",
        "r = m[0]",
        "r = m[:, 1]",
        "r = m[1:, ::2]",
        "r = m[[0, 1]]",
        "r = np.concatenate((m,))",
        "r = np.vstack((m,))",
        "r = np.apply_along_axis(lambda x: x, 0, m)",
        "r = np.vstack(m)",
        "r = np.block([[m]])",
        "r = np.select([m > -99.0], [m])",
        "r = np.copy(m, order='K')",
        "r = np.nan_to_num(m.T, copy=False)",
        "r = m.T.reshape(-1)",
        "r = m[::-1].ravel()",
        "r = m.T.T.ravel()",
        "r = m[:, :1].ravel()",
        "r = m[:1].T.ravel()",
        "r = m.T.flat[:2]",
        "r = np.triu_indices(2)[0] * m[0, 0]",
        "r = np.sort(m, axis=0)",
        "r = np.fft.fftshift(m)",
        "r = m.squeeze()",
        "r = list(m)[1]",
    ),
    3: (
        "r = np.dsplit(m, 2)[1]",
        "r = np.moveaxis(m, 0, -1)",
        "r = np.rollaxis(m, 2)",
        "r = np.transpose(m, (2, 0, 1))",
        "r = np.swapaxes(m, 0, 2)",
        "r = m.reshape(m.shape[0], -1)",
        "r = m.reshape(-1, m.shape[2])",
        "r = m.ravel()",
        "r = np.diagonal(m)",
        "r = np.diagonal(m, axis1=1, axis2=2)",
        "r = np.einsum('iij->ij', m)",
        "r = np.einsum('ijk->kji', m)",
        "r = m.mT",
        "r = m.T",
        "r = np.rot90(m, axes=(1, 2))",
        "r, q = np.unstack(m, axis=2)",
        "r = np.squeeze(m[:, :1], axis=1)",
        "r = np.expand_dims(m, (0, 2))",
        "r = np.flip(m, (0, 2))",
        "r = m[..., 0]",
        "r = np.linalg.diagonal(m)",
    ),
}
"""Texts that make `r` of `m`, by the rank of `m`."""

STORES: dict[str, str] = {
    "result": "r *= s",
    "element": "r[(0,) * r.ndim] = s",
    "base": "m *= s",
    "part": "m[0] = s * m[-1]",
    "nothing": "",
}

READS: dict[str, str] = {
    "sums": "return np.sum(m ** 2) + np.sum(r ** 3) * s",
    "elements": "return m[(0,) * m.ndim] * 3.0 + r[(0,) * r.ndim] ** 2 * s",
    "loop": "t = 0.0\nfor x in r:\n    t = t * 1.5 + np.sum(x ** 3)\nreturn t * s + np.sum(m)",
}

SOURCES: dict[str, str] = {
    "argument": "m = a",
    "fresh": "m = a * 1.5",
    "loop": "m = a\nfor k in range(2):\n    m = (a if k else a * 2.0)",
    "constant": "m = np.floor(a * 3.0)\ns = 1.5",
    "branch": "m = a * 1.5\nif s > 0.0:\n    m = a",
}

SHAPES = {1: (4,), 2: (3, 3), 3: (3, 2, 2)}
NARROW = {1: ((1,), (0,)), 2: ((3, 1), (1, 3), (1, 1), (0, 3), (3, 0)), 3: ((1, 2, 1),)}


def layouts(rank: int) -> dict[str, Callable[[], np.ndarray]]:
    """Arrays of one rank that lie in memory in different ways."""

    def values(shape: tuple[int, ...]) -> np.ndarray:
        return np.cos(np.arange(1.0, 1.0 + np.prod(shape))).reshape(shape) + 0.1

    shape = SHAPES[rank]
    wide = tuple(2 * n for n in shape)
    halves = (slice(None, None, 2),) * rank
    backwards = (slice(None, None, -1),) * rank
    made: dict[str, Callable[[], np.ndarray]] = {
        "C": lambda: values(shape),
        "F": lambda: np.asfortranarray(values(shape)),
        "strided": lambda: values(wide)[halves],
        "negative": lambda: values(shape)[backwards],
        "rows": lambda: values((shape[0], *wide[1:]))[(slice(None), *(slice(0, n) for n in shape[1:]))],
    }
    for narrow in NARROW[rank]:
        text = "x".join(map(str, narrow))
        made[f"{text} C"] = lambda narrow=narrow: values(narrow)
        made[f"{text} strided"] = lambda narrow=narrow: values(tuple(2 * n for n in narrow))[halves]
        made[f"{text} negative"] = lambda narrow=narrow: values(narrow)[backwards]
    return made


@dataclass(frozen=True)
class Program:
    """One program of the matrix, and its argument."""

    rank: int
    maker: str
    layout: str
    source: str
    store: str
    read: str

    def text(self) -> str:
        lines = [SOURCES[self.source], self.maker, STORES[self.store], READS[self.read]]
        body = "\n".join(line for line in lines if line).replace("\n", "\n    ")
        return f"import numpy as np\ndef f(a, s):\n    {body}\n"

    def array(self) -> np.ndarray:
        return layouts(self.rank)[self.layout]()


def drawn(number: int, seed: int) -> Iterator[Program]:
    """Programs of the matrix, which has some 200,000."""
    rng = random.Random(seed)
    makers = [(rank, maker) for rank, texts in MAKERS.items() for maker in texts]
    while number:
        rank, maker = rng.choice(makers)
        layout, source = rng.choice([*layouts(rank)]), rng.choice([*SOURCES])
        store, read = rng.choice([*STORES]), rng.choice([*READS])
        number -= 1
        yield Program(rank, maker, layout, source, store, read)


def outcome(function: Callable[..., Any], a: np.ndarray, s: float) -> tuple[Any, np.ndarray]:
    """What plain Python gives, or raises, and what it leaves in the array."""
    try:
        with np.errstate(all="ignore"):
            return function(a, s), a
    except Exception as error:
        return error, a


def judge(program: Program, backend: str = "python") -> str:
    """What becomes of a program: it is right, refused, or raises as plain Python does; or WRONG, and how."""
    f = define(program.text())
    want, left = outcome(f, program.array(), 0.7)
    mine = program.array()
    decorated = tg.differentiable(f, backend=backend, wrt=(0, 1))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", PerformanceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            value, (a_bar, s_bar) = decorated.value_and_grad(mine, 0.7)
        except TapegenError as error:
            return f"refused: {type(error).__name__} {str(error).splitlines()[-2:]}"
        except Exception as error:
            if isinstance(want, Exception) and type(error) is type(want):
                return "raises as plain Python"
            return f"WRONG: raises {error!r}, plain Python {want!r}"
        if isinstance(want, Exception):
            return f"WRONG: plain Python raises {want!r}"
        if not np.allclose(value, want, rtol=1e-12, atol=1e-13):
            return f"WRONG value {value}, plain Python {want}"
        if not np.allclose(mine, left, rtol=1e-12, atol=1e-13):
            return f"WRONG array left {mine.tolist()}, plain Python {left.tolist()}"
        along = np.sin(np.arange(1.0, 1.0 + mine.size)).reshape(mine.shape)
        h = 1e-6

        def moved(sign: float) -> float:
            a = program.array()
            a += sign * h * along
            return float(outcome(f, a, 0.7 + sign * h * 0.9)[0])

        slope = (moved(1.0) - moved(-1.0)) / (2 * h)
        got = float(np.sum(a_bar * along) + s_bar * 0.9)
        if not np.isclose(got, slope, rtol=1e-6, atol=1e-7):
            return f"WRONG reverse {got}, differences {slope}"
        try:
            _, tangent = tg.jvp(f, (program.array(), 0.7), (along, 0.9), backend=backend)
        except TapegenError as error:
            return f"refused forward: {type(error).__name__} {str(error).splitlines()[-2:]}"
        except Exception as error:
            return f"WRONG: forward raises {error!r}"
        if not np.isclose(float(tangent), slope, rtol=1e-6, atol=1e-7):
            return f"WRONG forward {float(tangent)}, differences {slope}"
    return "right"
