"""Fourier transforms, which compiled code takes from NumPy (`backend.numba.library.fft`) after checking sizes."""

from __future__ import annotations

import operator

import numpy as np

from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import BOOL, is_complex
from tapegen.loops.analysis.symbolic_bounds import Extent
from tapegen.loops.legalize.builder import LoopBuilder
from tapegen.loops.legalize.registry import FILL, arguments, handles
from tapegen.loops.scalarize.expressions import lazy, scalar
from tapegen.loops.scalarize.permutations import axis_of, static

_NORMS = (None, "backward", "ortho", "forward")


@handles(FILL, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
def _transform(w: LoopBuilder, call: Call, target: Var) -> None:
    array, n, axis, norm = arguments(w, call, "a", "n", "axis", "norm")
    if static(w, norm, "norm") not in _NORMS or (call.func is np.fft.rfft and is_complex(array.type)):
        raise w.unsupported(call.func, "of this form")
    x = lazy(w, array)
    k = axis_of(w, Const(-1) if axis is None else axis, x.rank)
    if n is None:
        least, size = (2 if call.func is np.fft.irfft else 1), w.clamped(x.extents[k])
        words = "0" if least == 1 else "..."
    else:
        least, size = 1, w.bind(scalar(w, n))
        words = "..."
    wrong = Call(operator.lt, (size, Const(least)), (), BOOL)
    w.check(wrong, ValueError, f"Invalid number of FFT data points ({words}) specified.")
    options: list[tuple[str, Expr]] = [] if axis is None else [("axis", Const(k))]
    if norm is not None:
        options.append(("norm", norm))
    given = (w.materialize(array), *(() if n is None else (size,)))
    w.call_new(target, Call(call.func, given, tuple(options), call.type))
    if call.func in (np.fft.fft, np.fft.ifft):
        extents = list(x.extents)
        extents[k] = extents[k] if n is None else Extent(size, w.facts.form(size))
        w.facts.set_shape(target, tuple(extents))
