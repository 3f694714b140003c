"""Every function that takes `out=`, with arrays for the result of every shape, dtype and layout, also its own operands.

`python -m tests.out_arrays` judges all programs; its words are those of `tests.view_stores`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import numpy as np

from tests.view_stores import POINT, Case, main

OUTS = (
    *(f"np.ones({shape})" for shape in ("(3, 3)", "3", "(2, 3, 3)", "(3, 1)", "(1, 3)", "1", "()", "9", "4", "(4, 3)")),
    *(f"np.ones({shape})" for shape in ("(2, 3)", "(3, 2)", "2", "(1, 1)", "0", "(6, 3)")),
    *(f"np.ones({shape}, {dtype})" for shape in ("(3, 3)", "3") for dtype in ("np.float32", "complex", "int", "bool")),
    *("np.ones((3, 3)).T", "np.ones((6, 6))[::2, ::-2]", "np.ones((3, 5))[1, 1:4]"),
    *("m", "m.T", "m[::-1]", "m[0]", "m[:, 1]", "m[1:]", "m.ravel()", "m[1, ::-1]", "v", "v[::-1]", "m.copy()"),
)
"""Arrays for the result: of shapes that fit and do not, and of the operands themselves."""

CALLS = (
    "np.exp(m, out=o)",
    "np.exp(v, o)",
    "np.exp(m, out=(o,))",
    "np.add(m, v, out=o)",
    "np.multiply(v, 2.0, o)",
    "np.subtract(m[1:], v[1], out=o)",
    "np.maximum(m[::-1], v, out=o)",
    "np.sqrt(m, out=o, where=m > 0.6)",
    "np.clip(m, 0.425, v[1], out=o)",
    "np.clip(v, None, 0.95, o)",
    "m.clip(0.425, 0.95, out=o)",
    "np.matmul(m, m, out=o)",
    "np.matmul(m, v, out=o)",
    "np.dot(m, m, out=o)",
    "np.dot(m, v, o)",
    "m.dot(m, o)",
    "np.vecdot(m, v, out=o)",
    "np.outer(v, v, out=o)",
    "np.multiply.outer(v, v, out=o)",
    "np.linalg.multi_dot([m, m, m], out=o)",
    "np.einsum('ij,jk->ik', m, m, out=o)",
    "np.einsum('ij->j', m, out=o)",
    "np.trace(m, out=o)",
    "np.sum(m, axis=0, out=o)",
    "np.sum(m, axis=1, keepdims=True, out=o)",
    "np.sum(m, None, None, o)",
    "m.sum(0, None, o)",
    "np.add.reduce(m, 1, None, o)",
    "np.add.reduceat(m, [0, 2], 0, None, o)",
    "np.logaddexp.reduce(m, out=o)",
    "np.sum(m, axis=0, out=o, initial=v[0])",
    "np.sum(m, axis=0, out=o, where=m > 0.6)",
    "np.prod(m, axis=0, out=o)",
    "np.max(m, axis=1, out=o)",
    "m.min(0, out=o)",
    "np.ptp(m, axis=0, out=o)",
    "np.mean(m, axis=0, out=o)",
    "m.mean(axis=1, out=o)",
    "np.std(m, axis=0, out=o)",
    "np.var(m, axis=0, out=o, ddof=1)",
    "np.median(m, axis=0, out=o)",
    "np.percentile(m, 30.0, axis=0, out=o)",
    "np.quantile(m, [0.3, 0.6, 0.7], axis=0, out=o)",
    "np.nansum(m, axis=0, out=o)",
    "np.nanprod(m, axis=0, out=o)",
    "np.nanmax(m, axis=0, out=o)",
    "np.nanmean(m, axis=0, out=o)",
    "np.nanstd(m, axis=0, out=o)",
    "np.nanvar(m, axis=0, out=o)",
    "np.nanmedian(m, axis=0, out=o)",
    "np.nanpercentile(m, 30.0, axis=0, out=o)",
    "np.cumsum(m, axis=-1, out=o)",
    "np.cumsum(m, out=o)",
    "np.cumsum(v, out=o)",
    "m.cumsum(0, out=o)",
    "np.cumprod(m, axis=0, out=o)",
    "np.nancumsum(m, axis=0, out=o)",
    "np.cumulative_sum(v, out=o)",
    "np.add.accumulate(m, out=o)",
    "np.multiply.accumulate(m, 1, None, o)",
    "np.maximum.accumulate(m, out=o)",
    "np.take(m, [0, 2, 0], axis=0, out=o)",
    "np.take(m, [0, 2, 0], out=o)",
    "m.take([2, 1], axis=1, out=o)",
    "np.choose([0, 1, 0], [m[0], m[1]], out=o)",
    "np.compress([True, False, True], m, axis=0, out=o)",
    "np.concatenate([m[1:], m[:1]], out=o)",
    "np.concatenate([m[0], v], axis=0, out=o)",
    "np.concatenate([m[:, 2:], m[:, :2]], axis=1, out=o)",
    "np.stack([m[2], m[0], v], out=o)",
    "np.stack([v, m[1], m[2]], axis=1, out=o)",
    "np.round(m, 2, out=o)",
    "m.round(2, out=o)",
    "np.fix(m, out=o)",
    "np.argmax(m, axis=0, out=o)",
    "np.isnan(m, out=o)",
    "np.all(m > 0.6, axis=0, out=o)",
    "np.fft.fft(m, out=o)",
    "np.fft.irfft(m, n=3, out=o)",
    "np.fft.fft2(m, out=o)",
    "np.fft.rfftn(m, out=o)",
    "np.fft.irfft2(m, (3, 3), out=o)",
    "np.fft.ifft(m, axis=0, out=o)",
    "np.fft.hfft(m, n=3, out=o)",
    "np.min(m, axis=0, out=o)",
    "np.amax(m, axis=0, out=o)",
    "np.nanmin(m, axis=1, out=o)",
    "np.nanquantile(m, 0.3, axis=0, out=o)",
    "np.nancumprod(m, axis=1, out=o)",
    "np.cumulative_prod(v, out=o)",
    "np.around(m, 2, out=o)",
    "np.any(m > 0.6, axis=0, out=o)",
    "np.argmin(m, axis=1, out=o)",
    "np.nanargmax(m, axis=0, out=o)",
    "np.isposinf(m, out=o)",
    "np.modf(m, out=(o, o.copy()))",
    "np.modf(m, out=(o, o))",
    "np.matvec(m, v, out=o)",
    "np.logaddexp.accumulate(m, 1, None, o)",
    "np.exp(m, out=o, casting='unsafe')",
    "np.exp(m, out=o, dtype=np.float32)",
    "np.add(m, v, out=o, where=v > 0.6)",
    "np.divide(m, v, o, where=[True, False, True])",
)
"""Calls that write their result into an array `o`."""

READS = ("np.sum(o * o) + np.sum(m)", "np.sum(np.abs(r if isinstance(r, np.ndarray) else r[0]) ** 2) + np.sum(m * v)")


def cases() -> Iterator[Case]:
    """All programs, also those that NumPy refuses."""
    for call, out, read in itertools.product(CALLS, OUTS, READS):
        if out == "np.ones(())" and ("cum" in call or "accumulate" in call):
            continue  # NumPy writes past its end, and the process may not live on
        yield Case(f"def f(m, v):\n    o = {out}\n    r = {call}\n    return np.real({read}).item()\n", POINT)


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main(sys.argv[1:], cases) > 0)
