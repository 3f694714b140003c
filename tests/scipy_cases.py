"""Calls of functions of scipy, beyond the one that a rule declares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.special as special
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, stats

from tests.rule_cases import SPD, STACKED, call, reduction, values

EDGES = ("reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror", "grid-constant")
POLES = np.array([1.2, -0.4, 0.3])
RECTANGLES = [(values(4, 5), values(2, 3)), (values(3, 2), values(4, 5)), (values(4, 4), values(2, 2))]

# which section of a filter is normalized is looked at exactly: no element can be moved (tests/rules/test_scipy.py)
ONE_SECTION = (signal.sosfilt,)

SOLVERS = (
    *(optimize.root, optimize.root_scalar, optimize.brentq, optimize.bisect, optimize.newton, optimize.fixed_point),
    *(optimize.minimize, optimize.minimize_scalar, integrate.quad, integrate.quad_vec),
    *(integrate.odeint, integrate.solve_ivp, interpolate.CubicSpline, interpolate.interp1d),
    *(interpolate.RegularGridInterpolator, interpolate.PPoly.__call__, interpolate.interp1d.__call__),
    *(interpolate.RegularGridInterpolator.__call__, interpolate.PPoly.integrate),
)
"""What calls functions or makes them."""

SCIPY_VARIANTS: dict[Callable, list] = {
    special.logsumexp: [
        *reduction(),
        call(values(3, 4), axis=1, b=np.array([1.0, 2.0, 0.5, 3.0])),
    ],
    special.softmax: [call(values(3, 4), axis=axis) for axis in (0, -1)],
    special.log_softmax: [call(values(3, 4), axis=axis) for axis in (0, -1)],
    special.polygamma: [call(2, np.array([0.7, 2.5]))],
    linalg.solve: [
        call(STACKED[0], values(3, 2)),
        call(STACKED[0], values(3), transposed=True),
        *(call(STACKED[0], values(3), lower, assume_a="sym") for lower in (False, True)),
        call(SPD[0], values(3), assume_a="pos"),
        *(call(STACKED[0], values(3), lower, assume_a="upper triangular") for lower in (False, True)),
        call(STACKED[0], values(3), assume_a="lower triangular"),
    ],
    linalg.solve_triangular: [
        *(call(STACKED[0], values(3), trans, lower) for trans in (0, 1) for lower in (False, True)),
        call(STACKED[0], values(3, 2), 0, True, True),
    ],
    linalg.cholesky: [call(SPD[0], True), call(SPD)],
    linalg.cho_factor: [call(SPD[0], True)],
    linalg.cho_solve: [call((SPD[0], False), values(3, 2))],
    linalg.eigh: [call(SPD[0], eigvals_only=True), call(SPD[0], lower=False, eigvals_only=True)],
    linalg.eigh_tridiagonal: [call(np.array([2.0, 3.0, 4.5]), values(2), True)],
    linalg.svd: [call(STACKED[0], compute_uv=False)],
    linalg.polar: [call(STACKED[0], "left")],
    linalg.toeplitz: [call(values(3))],
    linalg.block_diag: [call(values(2), values(2, 2))],
    linalg.lu_factor: [call(STACKED[1])],
    linalg.lu_solve: [call(linalg.lu_factor(STACKED[1]), values(3, 2), trans) for trans in (0, 1)],
    linalg.expm_frechet: [call(STACKED[1], values(3, 3), compute_expm=False)],
    linalg.hankel: [call(values(3)), call(values(2), values(4))],
    linalg.fiedler_companion: [call(values(n)) for n in (2, 3, 4, 6)],
    linalg.hessenberg: [call(values(4, 4)), call(values(2, 2), calc_q=True)],
    linalg.qr: [call(values(4, 2), mode="economic")],
    linalg.qr_multiply: [call(values(4, 2), values(4)), call(values(4, 2), values(3, 4), "right")],
    linalg.funm: [call(SPD[0], np.sqrt), call(STACKED[0], np.exp)],
    linalg.convolution_matrix: [
        call(values(m), n, mode) for m, n in ((3, 4), (5, 2), (2, 4)) for mode in ("full", "same", "valid")
    ],
    integrate.trapezoid: [call(values(4, 3), dx=0.5, axis=0)],
    integrate.cumulative_trapezoid: [
        call(values(4, 3), dx=0.5, axis=0),
        call(values(4, 3), np.array([0.0, 1.0, 3.0]), initial=0),
        call(values(4, 2), np.linspace(0.0, 2.0, 8).reshape(4, 2) ** 2, axis=0),
    ],
    integrate.simpson: [
        call(values(6)),
        call(values(4, 5), dx=0.5),
        call(values(4, 3), axis=0),
        call(values(2)),
        *(call(values(n), np.linspace(0.0, 2.0, n) ** 2) for n in (2, 5, 6)),
        call(values(5, 2), np.linspace(0.0, 2.0, 10).reshape(5, 2) ** 2, axis=0),
    ],
    **{
        func: [
            *(
                call(values(5), type, axis=0, norm=norm)
                for type in (1, 2, 3, 4)
                for norm in (None, "ortho", "forward", "backward")
            ),
            *(call(values(4, 3), 3, n=n, axis=0) for n in (None, 3, 6)),
        ]
        for func in (fft.dct, fft.idct, fft.dst, fft.idst)
    },
    **{
        func: [call(values(3, 4), 3, norm="ortho"), call(values(2, 3, 4), axes=(0, -1), norm="forward")]
        for func in (fft.dctn, fft.idctn, fft.dstn, fft.idstn)
    },
    stats.norm.logpdf: [call(values(2, 3), loc=values(3)), call(0.5, scale=2.0)],
    # ---- signal
    **{
        func: [
            *(call(values(n), values(m), mode) for n, m in ((5, 2), (2, 5), (4, 4)) for mode in ("same", "valid")),
            *(call(*pair, mode=mode) for pair in RECTANGLES for mode in ("full", "same", "valid")),
            call(values(2, 3, 2), values(2, 1, 2)),
        ]
        for func in (signal.convolve, signal.correlate, signal.fftconvolve, signal.oaconvolve)
    },
    **{
        func: [
            *(call(*pair, mode=mode) for pair in RECTANGLES for mode in ("full", "same", "valid")),
            *(call(*RECTANGLES[0], mode, edge) for mode in ("full", "same", "valid") for edge in ("wrap", "symm")),
            call(*RECTANGLES[0], mode="same", fillvalue=1.5),
            call(values(4, 5), values(2, 1), mode="valid"),
        ]
        for func in (signal.convolve2d, signal.correlate2d)
    },
    signal.lfilter: [
        call(values(2), POLES, values(4, 3), axis=0),
        call(values(4), POLES[:1], values(2, 5)),
        call(values(1), POLES, values(2, 3, 4), axis=1),
        call(values(3), POLES, values(2)),
        call(values(3), POLES, values(6), zi=values(2, seed=1)),
        call(values(4), POLES, values(2), zi=values(3, seed=1)),
        call(values(2), POLES, values(2, 4), zi=values(2, 2, seed=1)),
    ],
    signal.sosfilt: [call(np.array([[0.5, 0.2, 0.1, 1.0, -0.4, 0.3]]), values(5, 2), axis=0)],
    signal.stft: [
        call(values(23), 2.0, "hann", 7, 3, 9, scaling="psd"),
        *(call(values(23), 2.0, "boxcar", 6, boundary=edge, detrend="linear") for edge in ("even", "odd", "constant")),
        call(values(2, 11), nperseg=5, boundary=None, padded=False, return_onesided=False),
        call(values(11, 1, 2), nperseg=4, axis=0),
        call(values(13), window=np.hanning(6) + 0.2, nperseg=6),
    ],
    signal.istft: [
        call(values(5, 4), 2.0, "hann", 9),
        call(values(5, 4), window="boxcar", nperseg=6, noverlap=4, boundary=False),
        call(values(5, 4), nperseg=7, nfft=8, scaling="psd"),
        *(call(values(2, 5, 4), time_axis=k, freq_axis=m, input_onesided=False) for k, m in ((0, 2), (1, -3))),
    ],
    signal.welch: [
        call(values(23), 2.0, "hann", 7, 3, 9, scaling="spectrum", average="median"),
        call(values(13, 2), nperseg=6, axis=0, detrend="linear"),
        call(values(13), window=np.hanning(6) + 0.2, return_onesided=False, detrend=False),
    ],
    signal.csd: [
        call(values(23), values(19, seed=1), 2.0, "hann", 7, 3, 9, scaling="spectrum", average="median"),
        call(values(13, 2), values(13, 1, seed=1), nperseg=6, axis=0),
        call(values(2, 13), values(13, seed=1), nperseg=5, return_onesided=False),
    ],
    signal.detrend: [
        call(values(4, 5), axis=0),
        call(values(5), type="constant"),
        call(values(7, 2), axis=0, bp=3),
    ],
    # ---- ndimage
    **{
        func: [
            *(call(values(4, 3), values(3), mode=edge, cval=1.5) for edge in EDGES),
            *(call(values(5), values(m), origin=origin) for m, origin in ((2, 0), (4, 1), (3, -1), (3, 1), (4, -2))),
            call(values(3, 2), values(5), axis=0),
        ]
        for func in (ndimage.correlate1d, ndimage.convolve1d)
    },
    **{
        func: [
            *(call(values(4, 3), values(3, 2), mode=edge, cval=1.5) for edge in EDGES),
            call(values(5), values(4)),
            call(values(2, 3, 3), values(1, 2, 3), origin=0),
            call(values(4, 4), values(3, 3), origin=-1),
            call(values(4, 5), values(3, 2), origin=(1, 0)),
        ]
        for func in (ndimage.correlate, ndimage.convolve)
    },
    **{
        func: [
            *(call(values(4, 5), size, mode="mirror") for size in (1, 2, 3)),
            call(values(4, 5), 4, axis=0, origin=1),
        ]
        for func in (ndimage.uniform_filter1d, ndimage.maximum_filter1d, ndimage.minimum_filter1d)
    },
    **{
        func: [
            call(values(4, 5), (2, 3), mode="constant", cval=0.3),
            call(values(6), 2),
            call(values(3, 4), 2, axes=(1,)),
        ]
        for func in (ndimage.uniform_filter, ndimage.maximum_filter, ndimage.minimum_filter)
    },
    ndimage.gaussian_filter1d: [
        *(call(values(6), 0.9, order=order) for order in (0, 1, 2)),
        call(values(4, 3), 1.3, axis=0, mode="wrap", truncate=2.0),
        call(values(6), 0.7, radius=2),
    ],
    ndimage.gaussian_filter: [
        call(values(4, 5), (0.7, 1.1), mode="constant", cval=2.0),
        call(values(4, 5), 0.7, (0, 1)),
        call(values(4, 5), 0.7, radius=(1, 2)),
        call(values(2, 3, 4), 0.5, axes=(0, 2)),
    ],
    ndimage.laplace: [call(values(5)), *(call(values(3, 4), mode=edge, cval=0.7) for edge in EDGES)],
    ndimage.sobel: [call(values(3, 4), axis=0), call(values(2, 3, 4), axis=1, mode="nearest")],
    ndimage.prewitt: [call(values(3, 4), axis=0)],
    ndimage.gaussian_laplace: [call(values(4, 5), (0.7, 0.9))],
    ndimage.gaussian_gradient_magnitude: [call(values(5), 0.7)],
    ndimage.map_coordinates: [
        call(values(6), np.array([[0.3, 1.6, 4.7]]), order=1),
        call(values(3, 4), np.array([[-0.7, 0.4], [1.3, 3.6]]), order=1, cval=2.5),
        call(values(3, 4), np.array([[-0.7, 0.4], [1.3, 3.6]]), order=1, mode="nearest"),
        call(values(2, 3, 4), np.array([[0.7, 0.4], [1.3, 0.6], [0.2, 2.6]]), order=1),
    ],
}
