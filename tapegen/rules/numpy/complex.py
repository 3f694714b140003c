"""Complex numbers: parts, conjugates and angles, and the functions of `cmath`.

A function that is not holomorphic changes by the real part of `p * dz`, or by a map of `dz` that is linear in its real
and imaginary parts; docs/complex.md says what cotangents and tangents are.
"""

from __future__ import annotations

import builtins
import cmath
import math

import numpy as np

from tapegen.ir.intrinsics import imaginary_part, of_parts, real_part
from tapegen.rules.registry import linear, partials, pullback

# ---- parts ---------------------------------------------------------------------------------------------------------


@linear(np.real, real_part, in_="val", shapes=[(4,)], of_complex=True)
def real(val, *, out_bar):
    return out_bar  # the compiler makes it complex where the argument is


@linear(np.imag, imaginary_part, in_="val", shapes=[(4,)], of_complex=True)
def imag(val, *, out_bar):
    if np.iscomplexobj(val):
        return -1j * out_bar
    return np.zeros_like(val)


@linear(np.conjugate, in_="x", shapes=[(4,)], of_complex=True)
def conjugate(x, *, out_bar):
    return np.conjugate(out_bar)


@partials(np.angle, domain=[(0.2, 2.0)], of_complex=True, poles=True)
def angle(z, deg=False):
    """The angle of a real number is piecewise constant."""
    if not np.iscomplexobj(z):
        return 0.0, None
    if deg:
        return (-180.0j / math.pi) / z, None
    return -1j / z, None


@partials(builtins.complex, of_parts, domain=[(-2.0, 2.0), (-2.0, 2.0)], of_complex=True)
def complex_(real, imag=None):
    if imag is None:
        return 1.0, None
    return 1.0, 1j


# ---- cmath ---------------------------------------------------------------------------------------------------------


@partials(cmath.phase, domain=[(0.2, 2.0)], of_complex=True, poles=True)
def phase(z):
    if not np.iscomplexobj(z):
        return 0.0
    return -1j / z


@pullback(cmath.polar, shapes=[()], nonfinite=True, of_complex=True)
def polar(z, *, out, out_bar):
    if not np.iscomplexobj(z):
        return np.sign(z) * out_bar[0]
    return (out_bar[0] * out[0] - 1j * out_bar[1]) / z


@polar.pushforward
def polar_pushforward(z, *, out, z_dot):
    if not np.iscomplexobj(z):
        return np.sign(z) * z_dot, 0.0
    turned = z_dot / z
    return out[0] * turned.real, turned.imag


@partials(cmath.rect, domain=[(0.2, 2.0), (-2.0, 2.0)], of_complex=True)
def rect(r, phi, *, out):
    return cmath.rect(1.0, phi), 1j * out


@partials(cmath.exp, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def exp(z, *, out):
    return out


@partials(cmath.log, domain=[(0.3, 2.0), (1.5, 3.0)], nonfinite=True, of_complex=True)
def log(z, base=None, *, out):
    if base is None:
        return 1.0 / z
    return 1.0 / (z * cmath.log(base)), -out / (base * cmath.log(base))


@partials(cmath.log10, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def log10(z):
    return 1.0 / (math.log(10.0) * z)


@partials(cmath.sqrt, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def sqrt(z, *, out):
    return 0.5 / out


@partials(cmath.sin, domain=[(-2.0, 2.0)], of_complex=True)
def sin(z):
    return cmath.cos(z)


@partials(cmath.cos, domain=[(-2.0, 2.0)], of_complex=True)
def cos(z):
    return -cmath.sin(z)


@partials(cmath.tan, domain=[(-1.3, 1.3)], of_complex=True)
def tan(z, *, out):
    return 1.0 + out * out


@partials(cmath.asin, domain=[(-0.9, 0.9)], nonfinite=True, of_complex=True)
def asin(z):
    return 1.0 / (cmath.sqrt(-(z - 1.0)) * cmath.sqrt(-(-z - 1.0)))  # by the signs of zeros, also on its cuts


@partials(cmath.acos, domain=[(-0.9, 0.9)], nonfinite=True, of_complex=True)
def acos(z):
    return -1.0 / (cmath.sqrt(-(z - 1.0)) * cmath.sqrt(-(-z - 1.0)))


@partials(cmath.atan, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def atan(z):
    return 1.0 / (1.0 + z * z)


@partials(cmath.sinh, domain=[(-2.0, 2.0)], of_complex=True)
def sinh(z):
    return cmath.cosh(z)


@partials(cmath.cosh, domain=[(-2.0, 2.0)], of_complex=True)
def cosh(z):
    return cmath.sinh(z)


@partials(cmath.tanh, domain=[(-2.0, 2.0)], of_complex=True)
def tanh(z, *, out):
    return 1.0 - out * out


@partials(cmath.asinh, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def asinh(z):
    return 1.0 / cmath.sqrt(-(-(z * z) - 1.0))


@partials(cmath.acosh, domain=[(1.2, 3.0)], nonfinite=True, of_complex=True)
def acosh(z):
    return 1.0 / (cmath.sqrt(z - 1.0) * cmath.sqrt(-(-z - 1.0)))


@partials(cmath.atanh, domain=[(-0.9, 0.9)], nonfinite=True, of_complex=True)
def atanh(z):
    return 1.0 / (1.0 - z * z)
