"""Calls of library functions for each documented value of each of their options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, integrate, linalg, ndimage, signal

from tests.rule_cases import SPD, STACKED, values
from tests.scipy_cases import EDGES


class Call(NamedTuple):
    """A function, the floats that it is differentiated for, the rest of the call, and what its options may be."""

    func: Callable[..., Any]
    floats: tuple[Any, ...]
    rest: dict[str, Any]
    options: dict[str, tuple[Any, ...]]


BOTH = (False, True)
FLAGS = {"overwrite_a": BOTH, "check_finite": BOTH}
NORMS = (None, "backward", "ortho", "forward")
MODES = ("full", "same", "valid")
SHORT_MODES = (*MODES, "f", "s", "v", 0, 1, 2)
ORDERS = ("C", "F", "A", "K")
SORTS = ("quicksort", "mergesort", "heapsort", "stable", None)
PLACES = ("raise", "wrap", "clip", 0, 1, 2)
QUANTILES = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull"),
    *("linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)
PADS = (
    *("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"),
    "empty",
)
CASTS = ("no", "equiv", "safe", "same_kind", "unsafe")
ASSUMED = (
    *(None, "gen", "general", "diagonal", "tridiagonal", "banded", "upper triangular", "lower triangular"),
    *("sym", "symmetric", "her", "hermitian", "pos", "positive definite"),
)
WINDOWS = (
    *("boxcar", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "bartlett", "triang", "parzen"),
    *("bohman", "cosine", "tukey", "lanczos", ("kaiser", 2.0), ("gaussian", 1.5)),
)

VECTOR, MATRIX, TALL, SQUARE, POSITIVE = values(5), values(3, 4), values(4, 2), STACKED[0], SPD[0]
APART = np.diag([1.0, 2.5, 5.0]) + 0.2 * POSITIVE / np.max(POSITIVE)
BAND = np.array([[0.0, 0.4, -0.3], [2.0, 3.0, 2.5], [0.2, 0.1, 0.0]])
LINE = values(13)
OTHER = np.roll(LINE, 4) + 0.3 * values(13, seed=1)

CALLS = [
    # ---- numpy
    Call(np.convolve, (VECTOR, values(3)), {}, {"mode": SHORT_MODES}),
    Call(np.correlate, (VECTOR, values(3)), {}, {"mode": SHORT_MODES}),
    Call(np.sort, (MATRIX,), {}, {"kind": SORTS, "stable": (None, *BOTH), "axis": (0, 1, -1, None)}),
    Call(np.partition, (VECTOR,), {"kth": 2}, {"kind": ("introselect",)}),
    Call(np.take, (VECTOR,), {"indices": np.array([0, 3])}, {"mode": PLACES}),
    Call(np.take, (VECTOR,), {"indices": np.array([-7, 1, 9])}, {"mode": PLACES}),
    Call(np.choose, (), {"a": np.array([0, 1, 1]), "choices": [values(3), values(3, seed=1)]}, {"mode": PLACES}),
    Call(np.reshape, (MATRIX,), {"shape": (2, 6)}, {"order": ORDERS, "copy": (None, *BOTH)}),
    Call(np.ravel, (MATRIX,), {}, {"order": ORDERS}),
    Call(np.copy, (MATRIX,), {}, {"order": ORDERS}),
    Call(np.array, (MATRIX,), {}, {"order": ORDERS, "copy": (None, *BOTH), "ndmin": (0, 3)}),
    Call(np.asarray, (MATRIX,), {}, {"order": ORDERS, "copy": (None, *BOTH)}),
    Call(np.nan_to_num, (MATRIX,), {}, {"copy": BOTH}),
    Call(np.concatenate, (), {"arrays": (MATRIX, MATRIX + 1.0)}, {"axis": (0, 1, -1, None), "casting": CASTS}),
    Call(np.stack, (), {"arrays": (VECTOR, VECTOR + 1.0)}, {"axis": (0, 1, -1), "casting": CASTS}),
    Call(np.hstack, (), {"tup": (VECTOR, VECTOR + 1.0)}, {"casting": CASTS}),
    Call(np.vstack, (), {"tup": (VECTOR, VECTOR + 1.0)}, {"casting": CASTS}),
    Call(np.add, (VECTOR, VECTOR + 1.0), {}, {"casting": CASTS, "order": ORDERS, "subok": BOTH}),
    Call(np.sin, (VECTOR,), {}, {"casting": CASTS, "order": ORDERS, "subok": BOTH}),
    Call(np.matmul, (MATRIX, MATRIX.T), {}, {"casting": CASTS, "order": ORDERS, "subok": BOTH}),
    Call(np.einsum, ("ij,jk", MATRIX, MATRIX.T), {}, {"casting": CASTS, "order": ORDERS, "optimize": BOTH}),
    Call(np.quantile, (LINE,), {"q": 0.31}, {"method": QUANTILES}),
    Call(np.percentile, (LINE,), {"q": 31.0}, {"method": QUANTILES}),
    Call(np.nanquantile, (LINE,), {"q": 0.31}, {"method": QUANTILES}),
    Call(np.nanpercentile, (LINE,), {"q": 31.0}, {"method": QUANTILES}),
    Call(np.pad, (MATRIX,), {"pad_width": 1}, {"mode": PADS}),
    Call(np.pad, (MATRIX,), {"pad_width": 2, "mode": "reflect"}, {"reflect_type": ("even", "odd")}),
    Call(np.pad, (MATRIX,), {"pad_width": 2, "mode": "symmetric"}, {"reflect_type": ("even", "odd")}),
    Call(np.gradient, (LINE,), {}, {"edge_order": (1, 2)}),
    Call(np.meshgrid, (VECTOR, values(2)), {}, {"indexing": ("xy", "ij"), "sparse": BOTH, "copy": BOTH}),
    Call(np.linspace, (0.3, 1.7), {"num": 4}, {"endpoint": BOTH, "retstep": BOTH}),
    Call(np.vander, (VECTOR,), {}, {"increasing": BOTH}),
    Call(np.cov, (MATRIX,), {}, {"rowvar": BOTH, "bias": BOTH, "ddof": (None, 0, 1, 2)}),
    Call(np.corrcoef, (MATRIX,), {}, {"rowvar": BOTH}),
    Call(np.angle, (VECTOR,), {}, {"deg": BOTH}),
    Call(np.unwrap, (np.array([0.1, 2.0, 5.8, 12.0]),), {}, {"axis": (0, -1), "period": (3.0, 6.0)}),
    Call(np.linalg.norm, (VECTOR,), {}, {"ord": (None, 0, 1, 2, 3, -1, -2, 2.5, np.inf, -np.inf)}),
    Call(np.linalg.norm, (MATRIX,), {}, {"ord": (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)}),
    Call(np.linalg.vector_norm, (VECTOR,), {}, {"ord": (0, 1, 2, 3, -1, 2.5, np.inf, -np.inf), "keepdims": BOTH}),
    Call(np.linalg.matrix_norm, (MATRIX,), {}, {"ord": ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)}),
    Call(np.linalg.cond, (SQUARE,), {}, {"p": (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)}),
    Call(np.linalg.eigh, (POSITIVE,), {}, {"UPLO": ("L", "U", "l", "u")}),
    Call(np.linalg.eigvalsh, (POSITIVE,), {}, {"UPLO": ("L", "U", "l", "u")}),
    Call(np.linalg.cholesky, (POSITIVE,), {}, {"upper": BOTH}),
    Call(np.linalg.qr, (TALL,), {}, {"mode": ("reduced", "complete", "r", "raw")}),
    Call(np.linalg.svd, (TALL,), {"full_matrices": False}, {"compute_uv": BOTH, "hermitian": BOTH}),
    Call(np.linalg.svd, (POSITIVE,), {}, {"full_matrices": BOTH, "hermitian": BOTH}),
    Call(np.linalg.pinv, (TALL,), {}, {"hermitian": BOTH}),
    Call(np.linalg.pinv, (POSITIVE,), {}, {"hermitian": BOTH}),
    *(Call(func, (LINE,), {}, {"norm": NORMS, "n": (None, 8, 15)}) for func in (np.fft.fft, np.fft.ifft, np.fft.rfft)),
    *(Call(func, (LINE,), {}, {"norm": NORMS, "n": (None, 8, 15)}) for func in (np.fft.irfft, np.fft.hfft)),
    *(Call(func, (LINE,), {}, {"norm": NORMS}) for func in (np.fft.ihfft, fft.fft, fft.ifft, fft.rfft, fft.irfft)),
    *(Call(func, (MATRIX,), {}, {"norm": NORMS}) for func in (np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn)),
    *(
        Call(func, (MATRIX,), {}, {"norm": NORMS})
        for func in (np.fft.rfft2, np.fft.irfft2, np.fft.rfftn, np.fft.irfftn)
    ),
    *(Call(func, (MATRIX,), {}, {"norm": NORMS}) for func in (fft.fft2, fft.fftn, fft.rfftn, fft.irfftn, fft.ifftn)),
    *(
        Call(func, (LINE,), {}, {"type": (1, 2, 3, 4), "norm": NORMS, "orthogonalize": (None, *BOTH)})
        for func in (fft.dct, fft.idct, fft.dst, fft.idst, fft.dctn, fft.idctn, fft.dstn, fft.idstn)
    ),
    Call(fft.fft, (LINE,), {}, {"overwrite_x": BOTH, "workers": (None, 1)}),
    # ---- scipy.linalg
    Call(linalg.det, (SQUARE,), {}, FLAGS),
    Call(linalg.inv, (SQUARE,), {}, {**FLAGS, "assume_a": ASSUMED, "lower": BOTH}),
    Call(linalg.solve, (POSITIVE, values(3)), {}, {**FLAGS, "assume_a": ASSUMED, "lower": BOTH, "transposed": BOTH}),
    Call(linalg.solve, (POSITIVE, values(3)), {"assume_a": "pos"}, {"lower": BOTH, "overwrite_b": BOTH}),
    *(
        Call(
            linalg.solve_triangular,
            (SQUARE, right),
            {"lower": lower},
            {"trans": (0, 1, 2, "N", "T", "C"), "unit_diagonal": BOTH, "overwrite_b": BOTH, "check_finite": BOTH},
        )
        for lower in BOTH
        for right in (values(3), values(3, 2))
    ),
    Call(linalg.solve_banded, ((1, 1), BAND, values(3)), {}, {"overwrite_ab": BOTH, "overwrite_b": BOTH}),
    Call(linalg.solve_banded, ((1, 1), BAND, values(3)), {}, {"check_finite": BOTH}),
    Call(linalg.solve_toeplitz, (np.array([4.0, 1.0, 0.5]), values(3)), {}, {"check_finite": BOTH}),
    Call(linalg.cholesky, (POSITIVE,), {}, {**FLAGS, "lower": BOTH}),
    Call(linalg.cho_factor, (POSITIVE,), {}, {**FLAGS, "lower": BOTH}),
    Call(linalg.cho_solve, ((POSITIVE, True), values(3)), {}, {"overwrite_b": BOTH, "check_finite": BOTH}),
    Call(linalg.lu, (SQUARE,), {}, {**FLAGS, "permute_l": BOTH, "p_indices": BOTH}),
    Call(linalg.lu_factor, (SQUARE,), {}, FLAGS),
    Call(linalg.lu_solve, (linalg.lu_factor(SQUARE), values(3)), {}, {"trans": (0, 1, 2), "overwrite_b": BOTH}),
    Call(linalg.qr, (TALL,), {"mode": "economic"}, {**FLAGS, "pivoting": BOTH, "lwork": (None, 20)}),
    Call(linalg.qr, (TALL,), {}, {"mode": ("full", "r", "economic", "raw")}),
    Call(linalg.qr, (SQUARE,), {}, {"mode": ("full", "r", "economic", "raw")}),
    Call(linalg.qr_multiply, (SQUARE, values(3)), {}, {"mode": ("left", "right"), "conjugate": BOTH}),
    Call(linalg.qr_multiply, (SQUARE, values(3, 2)), {}, {"mode": ("left", "right"), "pivoting": BOTH}),
    Call(linalg.qr_multiply, (SQUARE, values(3)), {}, {"overwrite_a": BOTH, "overwrite_c": BOTH}),
    Call(
        linalg.svd,
        (TALL,),
        {"full_matrices": False},
        {**FLAGS, "compute_uv": BOTH, "lapack_driver": ("gesdd", "gesvd")},
    ),
    Call(linalg.svdvals, (TALL,), {}, FLAGS),
    Call(linalg.polar, (SQUARE,), {}, {"side": ("left", "right")}),
    Call(linalg.polar, (TALL,), {}, {"side": ("left", "right")}),
    Call(
        linalg.eigh,
        (APART,),
        {},
        {**FLAGS, "lower": BOTH, "eigvals_only": BOTH, "driver": (None, "ev", "evd", "evr", "evx")},
    ),
    Call(linalg.eigh, (POSITIVE,), {"eigvals_only": True}, {"type": (1, 2, 3), "subset_by_index": (None, [0, 1])}),
    Call(linalg.eigvalsh, (POSITIVE,), {}, {**FLAGS, "lower": BOTH, "driver": (None, "ev", "evd", "evr", "evx")}),
    Call(
        linalg.eigh_tridiagonal,
        (np.array([2.0, 3.0, 4.5]), values(2)),
        {},
        {
            "eigvals_only": BOTH,
            "check_finite": BOTH,
            "lapack_driver": ("auto", "stemr", "stebz", "sterf", "stev", "stevd"),
        },
    ),
    Call(
        linalg.eigh_tridiagonal,
        (np.array([2.0, 3.0, 4.5]), values(2)),
        {"eigvals_only": True, "select_range": (0, 1)},
        {"select": ("a", "i", "all", "index")},
    ),
    Call(linalg.schur, (POSITIVE,), {}, {"output": ("real", "r", "complex", "c"), **FLAGS}),
    Call(linalg.schur, (POSITIVE,), {}, {"sort": (None, "lhp", "rhp", "iuc", "ouc")}),
    Call(linalg.hessenberg, (values(4, 4),), {}, {**FLAGS, "calc_q": BOTH}),
    Call(linalg.pinv, (TALL,), {}, {"return_rank": BOTH, "check_finite": BOTH}),
    Call(linalg.pinvh, (POSITIVE,), {}, {"lower": BOTH, "return_rank": BOTH}),
    Call(linalg.norm, (MATRIX,), {}, {"ord": (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf), "keepdims": BOTH}),
    Call(linalg.lstsq, (TALL, values(4)), {}, {"lapack_driver": (None, "gelsd", "gelsy", "gelss")}),
    Call(linalg.convolution_matrix, (VECTOR,), {"n": 4}, {"mode": MODES}),
    Call(linalg.expm_frechet, (SQUARE, values(3, 3)), {}, {"method": (None, "SPS", "blockEnlarge")}),
    Call(linalg.expm_frechet, (SQUARE, values(3, 3)), {}, {"compute_expm": BOTH}),
    # ---- scipy.signal
    *(
        Call(func, (LINE, values(4)), {}, {"mode": MODES, "method": ("auto", "direct", "fft")})
        for func in (signal.convolve, signal.correlate)
    ),
    *(
        Call(func, (LINE, values(4)), {}, {"mode": MODES, "axes": (None, 0)})
        for func in (signal.fftconvolve, signal.oaconvolve)
    ),
    *(
        Call(
            func,
            (values(4, 5), values(2, 3)),
            {"mode": "same"},
            {"boundary": ("fill", "wrap", "symm", "symmetric", "circular", "pad"), "fillvalue": (0, 1)},
        )
        for func in (signal.convolve2d, signal.correlate2d)
    ),
    *(
        Call(func, (values(4, 5), values(2, 3)), {"boundary": "symm"}, {"mode": (*MODES, 0, 1, 2)})
        for func in (signal.convolve2d, signal.correlate2d)
    ),
    Call(signal.detrend, (LINE,), {}, {"type": ("linear", "constant", "l", "c"), "overwrite_data": BOTH, "bp": (0, 5)}),
    Call(signal.stft, (LINE,), {"nperseg": 6}, {"boundary": ("even", "odd", "constant", "zeros", None)}),
    Call(
        signal.stft,
        (LINE,),
        {"nperseg": 6},
        {"scaling": ("spectrum", "psd"), "detrend": (False, "linear", "constant", "l", "c"), "padded": BOTH},
    ),
    Call(signal.stft, (LINE,), {"nperseg": 6}, {"window": WINDOWS, "return_onesided": BOTH}),
    Call(signal.istft, (values(5, 4),), {}, {"scaling": ("spectrum", "psd"), "boundary": BOTH, "input_onesided": BOTH}),
    *(
        Call(
            func,
            floats,
            {"nperseg": 6},
            {
                "scaling": ("density", "spectrum"),
                "average": ("mean", "median"),
                "detrend": (False, "linear", "constant", "l", "c"),
                "return_onesided": BOTH,
            },
        )
        for func, floats in ((signal.welch, (LINE,)), (signal.csd, (LINE, OTHER)))
    ),
    Call(signal.lfilter, (values(2), np.array([1.2, -0.4, 0.3]), LINE), {}, {"axis": (0, -1), "zi": (None, values(2))}),
    # ---- scipy.ndimage
    *(
        Call(func, (values(5, 4), weights), {}, {"mode": (*EDGES, ("wrap", "nearest")), "origin": (0, 1, -1)})
        for func, weights in (
            (ndimage.correlate1d, values(3)),
            (ndimage.convolve1d, values(3)),
            (ndimage.correlate, values(3, 3)),
            (ndimage.convolve, values(3, 3)),
        )
    ),
    *(
        Call(func, (values(5, 4),), {"size": 3}, {"mode": (*EDGES, ("wrap", "nearest")), "origin": (0, 1, -1)})
        for func in (ndimage.uniform_filter, ndimage.maximum_filter, ndimage.minimum_filter)
    ),
    *(
        Call(func, (values(5, 4),), {"size": 3}, {"mode": EDGES, "origin": (0, 1, -1)})
        for func in (ndimage.uniform_filter1d, ndimage.maximum_filter1d, ndimage.minimum_filter1d)
    ),
    *(
        Call(func, (values(5, 4),), {"sigma": 0.8}, {"mode": (*EDGES, ("wrap", "nearest")), "order": (0, 1, 2, 3)})
        for func in (ndimage.gaussian_filter, ndimage.gaussian_filter1d)
    ),
    *(
        Call(func, (values(5, 4),), {}, {"mode": (*EDGES, ("wrap", "nearest")), "axis": (0, 1, -1)})
        for func in (ndimage.sobel, ndimage.prewitt)
    ),
    *(
        Call(func, (values(5, 4),), {"sigma": 0.8}, {"mode": EDGES, "axes": (None, (0,), (1,), (0, 1))})
        for func in (ndimage.gaussian_laplace, ndimage.gaussian_gradient_magnitude)
    ),
    Call(ndimage.gaussian_filter, (values(5, 4),), {"sigma": 0.8}, {"axes": (None, (0,), (1,), (0, 1))}),
    Call(ndimage.laplace, (values(5, 4),), {}, {"axes": (None, (0,), (1,), (0, 1))}),
    Call(ndimage.laplace, (values(5, 4),), {}, {"mode": (*EDGES, ("wrap", "nearest"))}),
    Call(
        ndimage.map_coordinates,
        (values(3, 4), np.array([[-0.7, 0.4], [1.3, 3.6]])),
        {"order": 1},
        {"mode": EDGES, "prefilter": BOTH, "order": (0, 1, 2, 3)},
    ),
    # ---- integrals and curves
    Call(integrate.cumulative_trapezoid, (LINE,), {}, {"initial": (None, 0)}),
    Call(integrate.cumulative_simpson, (LINE,), {}, {"initial": (None, 0.5)}),
    Call(integrate.romb, (values(9),), {}, {"show": (False,)}),
]
