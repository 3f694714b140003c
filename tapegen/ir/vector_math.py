"""Vector math library: elementary functions without branches, tables or calls, which LLVM vectorizes.

Their source is printed into compiled texts that use them (`loops.vectorize`), so each function refers only to other
functions of this module.  They round after each operation and use no fused operations, so every
processor gives the same bits, and so do vector and scalar instructions.  Errors are the largest found against extended
precision, in units in the last place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

LARGEST_ANGLE = {"float64": 32768.0, "float32": 4096.0}
"""`vsin` and `vcos`, `vsinf` and `vcosf` are accurate up to this absolute value."""

LARGEST_POWER = 709.782712893384
"""The largest argument whose exponential is finite."""


def vexp(x: Any) -> Any:
    """exp(x) within 0.8 ulp.

    x = n log(2) + r and exp(r) = 1 + r + r^2 q(r), with q by Remez' algorithm.  2^n is
    two factors, since the largest and the smallest results need more than one.
    """
    c = 711.0 if x > 711.0 else x
    c = -746.0 if c < -746.0 else c
    t = c * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    hi = c - n * 0.6931471803691238
    lo = n * 1.9082149292705877e-10
    r = hi - lo
    z = r * r
    w = z * z
    q = 0.001388888894375988 + r * 0.00019841269505891396
    q += z * (2.480149294954299e-05 + r * 2.7557586716377972e-06)
    q += w * (2.7630306344520343e-07 + r * 2.5000042598505542e-08)
    q = 0.04166666666652973 + r * 0.00833333333349491 + z * q
    q = 0.5000000000000011 + r * 0.1666666666666641 + z * q
    s = 1.0 + hi
    y = s + ((1.0 - s) + hi + (z * q - lo))
    n_bits = np.float64(t).view(np.int64)
    half = n_bits >> 1
    scale = np.int64((half << 52) + 4607182418800017408).view(np.float64)
    y = y * scale
    half = n_bits - half
    scale = np.int64((half << 52) + 4607182418800017408).view(np.float64)
    return y * scale


def vlog(x: Any) -> Any:
    """log(x) within 0.9 ulp.

    x = 2^k (1 + f) and log(1 + f) = 2 artanh(f / (2 + f)), with the polynomial of Sun's
    fdlibm.
    """
    tiny = x < 2.2250738585072014e-308
    scaled = x * 18014398509481984.0 if tiny else x
    u = np.float64(scaled).view(np.int64) + 2638149301829632
    power = np.int64(u >> 52 | 4841369599423283200).view(np.float64)
    k = power - (4503599627371573.0 if tiny else 4503599627371519.0)
    u = (u & 4503599627370495) + 4604544269498187776
    f = np.int64(u).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = 0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)
    r = z * (0.6666666666666735 + w * r)
    r += w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373))
    h = 0.5 * f * f
    rest = s * (h + r) + k * 1.9082149292705877e-10
    y = k * 0.6931471803691238 - ((h - rest) - f)
    y = y if x < np.inf else x
    pole = -np.inf if x == 0.0 else np.nan
    return y if x > 0.0 else pole


def vlog1p(x: Any) -> Any:
    """log(1 + x) within 0.9 ulp.

    1 + x = 2^k (1 + f) and log(1 + f) = 2 artanh(f / (2 + f)), with what rounding 1 + x
    has lost, after Sun's fdlibm.
    """
    d = 1.0 + x
    u = np.float64(d).view(np.int64) + 2638149301829632
    power = np.int64(u >> 52 | 4841369599423283200).view(np.float64)
    k = power - 4503599627371519.0
    u = (u & 4503599627370495) + 4604544269498187776
    f = np.int64(u).view(np.float64) - 1.0
    c = (1.0 - (d - x) if x > 1.0 else x - (d - 1.0)) / d
    g = f if k != 0.0 else x
    c = c if k != 0.0 else 0.0
    s = g / (2.0 + g)
    z = s * s
    w = z * z
    r = 0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)
    r = z * (0.6666666666666735 + w * r)
    r += w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373))
    h = 0.5 * g * g
    rest = s * (h + r) + (k * 1.9082149292705877e-10 + c)
    y = k * 0.6931471803691238 - ((h - rest) - g)
    y = y if x < np.inf else x
    pole = -np.inf if x == -1.0 else np.nan
    inside = y if x > -1.0 else pole
    return x if x == 0.0 else inside


def sine_and_cosine(x: Any) -> Any:
    """sin(x) and cos(x) within 0.8 ulp, for abs(x) <= 32768.

    x = n pi/2 + hi + lo, with pi/2 in three parts, and the polynomials of Sun's fdlibm.
    """
    t = x * 0.6366197723675814 + 6755399441055744.0
    n = t - 6755399441055744.0
    quadrant = np.float64(t).view(np.int64)
    a = x - n * 1.5707963267923333
    w = n * 2.5633441515839558e-12
    b = a - w
    v = b - a
    c = n * 1.0562999066987428e-23 - ((a - (b - v)) - (w + v))
    hi = b - c
    lo = (b - hi) - c
    z = hi * hi
    w = z * z
    v = z * hi
    r = 2.7557313707070068e-06 + z * -2.5050760253406863e-08 + w * 1.58969099521155e-10
    r = 0.00833333333332249 + z * -0.0001984126982985795 + w * r
    sine = hi - ((z * (0.5 * lo - v * r) - lo) - v * -0.16666666666666632)
    r = 2.480158728947673e-05 + z * -2.7557314351390663e-07
    r = r + w * (2.087572321298175e-09 + z * -1.1359647557788195e-11)
    r = z * (0.0416666666666666 + z * -0.001388888888887411 + w * r)
    h = 0.5 * z
    u = 1.0 - h
    cosine = u + (((1.0 - u) - h) + (z * r - hi * lo))
    across = (quadrant & 1) != 0
    first = cosine if across else sine
    second = sine if across else cosine
    first = -first if quadrant & 2 else first
    second = -second if (quadrant + 1) & 2 else second
    return x if x == 0.0 else first, second


def vsin(x: Any) -> Any:
    """sin(x), see `sine_and_cosine`."""
    return sine_and_cosine(x)[0]


def vcos(x: Any) -> Any:
    """cos(x), see `sine_and_cosine`."""
    return sine_and_cosine(x)[1]


def vtanh(x: Any) -> Any:
    """tanh(x) within 0.9 ulp.

    -m / (2 + m) with m = exp(-2 abs(x)) - 1 in two parts, and with what rounding the
    quotient has lost.
    """
    size = abs(x)
    c = -2.0 * size
    c = -40.0 if c < -40.0 else c
    t = c * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    hi = c - n * 0.6931471803691238
    lo = n * 1.9082149292705877e-10
    r = hi - lo
    z = r * r
    w = z * z
    q = 0.0013888888888866757 + r * 0.0001984126988619239
    q += z * (2.4801587360721463e-05 + r * 2.755724413016392e-06)
    p = 2.755724261681134e-07 + r * 2.5109068289662572e-08 + z * 2.092448800623241e-09
    q += w * p
    q = 0.0416666666666667 + r * 0.00833333333332161 + z * q
    q = 0.5 + r * 0.16666666666666677 + z * q
    n_bits = np.float64(t).view(np.int64)
    s = np.int64((n_bits << 52) + 4607182418800017408).view(np.float64)
    g = s * hi
    less = s - 1.0
    top = less + g
    rest = (g - (top - less)) + ((s - (less + 1.0)) + s * (z * q - lo))
    m = top + rest
    m_rest = rest - (m - top)
    d = 2.0 + m
    d_rest = (m - (d - 2.0)) + m_rest
    inverse = 1.0 / d
    y = m * inverse
    y_head = np.int64(np.float64(y).view(np.int64) & -134217728).view(np.float64)
    d_head = np.int64(np.float64(d).view(np.int64) & -134217728).view(np.float64)
    left = (m - y_head * d_head) - y_head * (d - d_head)
    left += m_rest - y_head * d_rest
    y = y_head + left * inverse
    y = -y if x > 0.0 else y
    return x if size < 1e-300 else y


def erf_of_small(x: Any) -> Any:
    """erf(x) within 0.95 ulp, for abs(x) < 0.8125: x + x p(x^2), with p by Remez' algorithm."""
    z = x * x
    t = z - 0.3125
    u = t * t
    p = 1.2452673775054477e-06 + t * -1.236561239801685e-07 + u * 1.0967705679341477e-08
    p = 9.20133309720714e-05 + t * -1.13348873027403e-05 + u * p
    p = 0.004049991296808644 + t * -0.0006567771486480188 + u * p
    p = 0.09046728432637043 + t * -0.021102135797003593 + u * p
    p = 0.021086488073378776 + (t * -0.31287464647761215 + u * p)
    return x + x * p


def verf(x: Any) -> Any:
    """erf(x) within 0.95 ulp.

    x + x p(x^2) up to 0.8125, a polynomial of its own up to 1.125, then 1 - exp(-x^2) r,
    with polynomials by Remez' algorithm.
    """
    size = abs(x)
    z = x * x
    near = erf_of_small(x)
    t = size - 0.96875
    u = t * t
    p = 0.0011837729676819721 + t * 0.0001623019441572105 + u * -0.00020316931765221918
    p = -0.004193456213327841 + t * -0.002262473323686932 + u * p
    p = 0.0011716658587920398 + t * 0.016278240815997227 + u * p
    p = 0.08004573848282696 + t * -0.06973067190024268 + u * p
    p = -0.42765305846794804 + t * 0.12904316078771302 + u * p
    p = 0.0011941505933151274 + (t * 0.4414483184185269 + u * p)
    middle = 0.828125 + p
    c = 6.0 if size > 6.0 else size
    t = (c - 2.0) / (c + 2.0)
    u = t * t
    p = 2.752223241290004e-05 + t * -2.7204391060743327e-05 + u * -1.3336809839156988e-05
    p = 4.3552598647942374e-05 + t * 0.00017433317216996496 + u * p
    p = -0.0008471431202528807 + t * -0.0009819763070360837 + u * p
    p = 0.0037328924026241352 + t * 0.00699746173519198 + u * p
    p = 0.24165819424247237 + t * -0.07897858101577356 + u * p
    p = 0.25539567631050575 + (t * -0.42718584741395815 + u * p)
    far = 1.0 - vexp(-z) * p
    far = middle if size < 1.125 else far
    far = -far if x < 0.0 else far
    return near if size < 0.8125 else far


def erfc_scaled(x: Any) -> Any:
    """exp(x^2) erfc(x) within 2.5 ulp, for 0.3 < x < 30.

    (1 + 2 x) exp(x^2) erfc(x) varies little; as a polynomial of (x - 4) / (x + 4) by Remez' algorithm.
    """
    t = (x - 4.0) / (x + 4.0)
    u = t * t
    p = -7.813886013210058e-09 + t * -1.3569601791917903e-08 + u * -1.7761172805895543e-09
    p = 6.27183963607383e-08 + t * 1.1498434434331572e-07 + u * p
    p = 3.0149813242176004e-07 + t * -8.346235289390759e-07 + u * p
    p = -1.1224970909366278e-05 + t * 5.717456641128273e-06 + u * p
    p = 0.0001506223482029266 + t * -2.4402962758462577e-05 + u * p
    p = -0.0007577733751934836 + t * -0.00019925556914862562 + u * p
    p = -0.016197734052738524 + t * 0.005031969767334396 + u * p
    p = -0.06633036581220388 + t * 0.037167515561210444 + u * p
    p = -0.10103906603631646 + t * 0.0937328349968747 + u * p
    p = 0.015379652102620017 + t * 0.0680970542547349 + u * p
    p = 1.2329951186255526 + (t * -0.13962111684056286 + u * p)
    return p / (1.0 + 2.0 * x)


def square_and_error(x: Any) -> Any:
    """X * x and what its rounding has lost, by the halves of x (Dekker)."""
    head = np.int64(np.float64(x).view(np.int64) & -134217728).view(np.float64)
    rest = x - head
    z = x * x
    return z, ((head * head - z) + 2.0 * head * rest) + rest * rest


def verfc(x: Any) -> Any:
    """erfc(x) within 3.5 ulp: 1 - erf(x) up to 0.4, then exp(-x^2) with what rounding the square has lost."""
    size = abs(x)
    c = 28.0 if size > 28.0 else size
    z, lost = square_and_error(c)
    y = vexp(-z) * erfc_scaled(c)
    y = y - y * lost
    y = 2.0 - y if x < 0.0 else y
    return 1.0 - erf_of_small(x) if size < 0.4 else y


def vndtr(x: Any) -> Any:
    """The normal distribution function within 3.5 ulp: erfc(-x / sqrt(2)) / 2, with what rounding x^2 has lost."""
    size = abs(x)
    c = 39.0 if size > 39.0 else size
    z, lost = square_and_error(c)
    y = 0.5 * vexp(-0.5 * z) * erfc_scaled(c * 0.7071067811865476)
    y = y - y * (0.5 * lost)
    y = 1.0 - y if x > 0.0 else y
    return 0.5 + 0.5 * erf_of_small(x * 0.7071067811865476) if size < 0.6 else y


# ---- single precision: the same methods; each constant is a float32, as numba makes float64 of a product of both -----


def vexpf(x: Any) -> Any:
    """exp(x) in float32 within 0.8 ulp, see `vexp`."""
    c = np.float32(90.0) if x > np.float32(90.0) else x
    c = np.float32(-105.0) if c < np.float32(-105.0) else c
    t = c * np.float32(1.442695) + np.float32(12582912.0)
    n = t - np.float32(12582912.0)
    hi = c - n * np.float32(0.693359375)
    lo = n * np.float32(-0.00021219444)
    r = hi - lo
    z = r * r
    q = np.float32(0.041666169) + r * np.float32(0.008370321) + z * np.float32(0.0013952973)
    q = np.float32(0.5) + r * np.float32(0.16666506) + z * q
    s = np.float32(1.0) + hi
    y = s + ((np.float32(1.0) - s) + hi + (z * q - lo))
    n_bits = np.float32(t).view(np.int32)
    half = n_bits >> 1
    scale = np.int32((half << 23) + 1065353216).view(np.float32)
    y = y * scale
    half = n_bits - half
    scale = np.int32((half << 23) + 1065353216).view(np.float32)
    return y * scale


def vlogf(x: Any) -> Any:
    """log(x) in float32 within 0.8 ulp, see `vlog`."""
    tiny = x < np.float32(1.1754944e-38)
    scaled = x * np.float32(33554432.0) if tiny else x
    u = np.int32(np.float32(scaled).view(np.int32) + 4913933)
    k = np.float32(np.int32(u >> 23)) - (np.float32(152.0) if tiny else np.float32(127.0))
    u = (u & 8388607) + 1060439283
    f = np.int32(u).view(np.float32) - np.float32(1.0)
    s = f / (np.float32(2.0) + f)
    z = s * s
    w = z * z
    r = z * (np.float32(0.6666666) + w * np.float32(0.28498787))
    r += w * (np.float32(0.40000972) + w * np.float32(0.24279079))
    h = np.float32(0.5) * f * f
    rest = s * (h + r) + k * np.float32(3.1946183e-05)
    y = k * np.float32(0.693115234375) - ((h - rest) - f)
    y = y if x < np.float32(np.inf) else x
    pole = np.float32(-np.inf) if x == np.float32(0.0) else np.float32(np.nan)
    return y if x > np.float32(0.0) else pole


def vlog1pf(x: Any) -> Any:
    """log(1 + x) in float32 within 0.8 ulp, see `vlog1p`."""
    d = np.float32(1.0) + x
    u = np.int32(np.float32(d).view(np.int32) + 4913933)
    k = np.float32(np.int32(u >> 23)) - np.float32(127.0)
    u = (u & 8388607) + 1060439283
    f = np.int32(u).view(np.float32) - np.float32(1.0)
    c = (np.float32(1.0) - (d - x) if x > np.float32(1.0) else x - (d - np.float32(1.0))) / d
    g = f if k != np.float32(0.0) else x
    c = c if k != np.float32(0.0) else np.float32(0.0)
    s = g / (np.float32(2.0) + g)
    z = s * s
    w = z * z
    r = z * (np.float32(0.6666666) + w * np.float32(0.28498787))
    r += w * (np.float32(0.40000972) + w * np.float32(0.24279079))
    h = np.float32(0.5) * g * g
    rest = s * (h + r) + (k * np.float32(3.1946183e-05) + c)
    y = k * np.float32(0.693115234375) - ((h - rest) - g)
    y = y if x < np.float32(np.inf) else x
    pole = np.float32(-np.inf) if x == np.float32(-1.0) else np.float32(np.nan)
    inside = y if x > np.float32(-1.0) else pole
    return x if x == np.float32(0.0) else inside


def sincosf(x: Any) -> Any:
    """sin(x) and cos(x) in float32 within 0.8 ulp, for abs(x) <= 4096.

    x = n pi/2 + hi + lo, with pi/2 in four parts, of which products with n are exact but for the last.
    """
    t = x * np.float32(0.63661975) + np.float32(12582912.0)
    n = t - np.float32(12582912.0)
    quadrant = np.float32(t).view(np.int32)
    a = (x - n * np.float32(1.5703125)) - n * np.float32(0.0004837513)
    w = n * np.float32(7.5495336e-08)
    b = a - w
    c = n * np.float32(2.563344e-12) - ((a - b) - w)
    hi = b - c
    lo = (b - hi) - c
    z = hi * hi
    w = z * z
    v = z * hi
    r = np.float32(0.008333329) + z * np.float32(-0.0001983932) + w * np.float32(2.7181634e-06)
    sine = hi - ((z * (np.float32(0.5) * lo - v * r) - lo) - v * np.float32(-0.16666667))
    r = z * (np.float32(0.041666646) + z * np.float32(-0.0013887356) + w * np.float32(2.4437039e-05))
    h = np.float32(0.5) * z
    u = np.float32(1.0) - h
    cosine = u + (((np.float32(1.0) - u) - h) + (z * r - hi * lo))
    across = (quadrant & 1) != 0
    first = cosine if across else sine
    second = sine if across else cosine
    first = -first if quadrant & 2 else first
    second = -second if (quadrant + 1) & 2 else second
    return x if x == np.float32(0.0) else first, second


def vsinf(x: Any) -> Any:
    """sin(x) in float32, see `sincosf`."""
    return sincosf(x)[0]


def vcosf(x: Any) -> Any:
    """cos(x) in float32, see `sincosf`."""
    return sincosf(x)[1]


def vtanhf(x: Any) -> Any:
    """tanh(x) in float32 within 0.8 ulp, see `vtanh`."""
    size = abs(x)
    c = np.float32(-2.0) * size
    c = np.float32(-20.0) if c < np.float32(-20.0) else c
    t = c * np.float32(1.442695) + np.float32(12582912.0)
    n = t - np.float32(12582912.0)
    hi = c - n * np.float32(0.693359375)
    lo = n * np.float32(-0.00021219444)
    r = hi - lo
    z = r * r
    q = (
        np.float32(0.041666236)
        + r * np.float32(0.008333258)
        + z * (np.float32(0.0013948373) + r * np.float32(0.00019921524))
    )
    q = np.float32(0.5) + r * np.float32(0.16666667) + z * q
    n_bits = np.float32(t).view(np.int32)
    s = np.int32((n_bits << 23) + 1065353216).view(np.float32)
    g = s * hi
    less = s - np.float32(1.0)
    top = less + g
    rest = (g - (top - less)) + ((s - (less + np.float32(1.0))) + s * (z * q - lo))
    m = top + rest
    m_rest = rest - (m - top)
    d = np.float32(2.0) + m
    d_rest = (m - (d - np.float32(2.0))) + m_rest
    inverse = np.float32(1.0) / d
    y = m * inverse
    y_head = np.int32(np.float32(y).view(np.int32) & -4096).view(np.float32)
    d_head = np.int32(np.float32(d).view(np.int32) & -4096).view(np.float32)
    left = (m - y_head * d_head) - y_head * (d - d_head)
    left += m_rest - y_head * d_rest
    y = y_head + left * inverse
    y = -y if x > np.float32(0.0) else y
    return x if size < np.float32(1e-30) else y


CALLED: dict[Callable[..., Any], tuple[Callable[..., Any], ...]] = {
    vexp: (),
    vlog: (),
    vlog1p: (),
    sine_and_cosine: (),
    vsin: (sine_and_cosine,),
    vcos: (sine_and_cosine,),
    vtanh: (),
    erf_of_small: (),
    verf: (vexp, erf_of_small),
    erfc_scaled: (),
    square_and_error: (),
    verfc: (vexp, erf_of_small, erfc_scaled, square_and_error),
    vndtr: (vexp, erf_of_small, erfc_scaled, square_and_error),
    vexpf: (),
    vlogf: (),
    vlog1pf: (),
    sincosf: (),
    vsinf: (sincosf,),
    vcosf: (sincosf,),
    vtanhf: (),
}
"""The functions of this module that each of them calls."""

LOCALS = frozenset(name for function in CALLED for name in function.__code__.co_varnames)
"""Local variable names of these functions."""


def text_of(function: Callable[..., Any]) -> list[str]:
    """The lines of one of these functions, without type annotations."""
    head, *lines = inspect.getsource(function).splitlines()
    return [head.replace(": Any", "").replace(" -> Any", ""), *lines]
