"""Element-wise functions: ufuncs, the operators of Python and their counterparts in `math`.

A comparison as a partial (`x > y`) is a 0/1 weight.  `d + (d == 0)` is a denominator that is 1 where `d` vanishes.
"""

from __future__ import annotations

import builtins
import math
import operator

import numpy as np

from tapegen.ir.intrinsics import guarded, strong_mul
from tapegen.rules.registry import expands, fixed, linear, partials, pullback

# ---- arithmetic ----------------------------------------------------------------------------------------------------


@partials(np.add, operator.add, domain=[(-2.0, 2.0), (-2.0, 2.0)], of_complex=True)
def add(x, y):
    return 1.0, 1.0


@partials(np.subtract, operator.sub, domain=[(-2.0, 2.0), (-2.0, 2.0)], of_complex=True)
def subtract(x, y):
    return 1.0, -1.0


@partials(np.multiply, operator.mul, domain=[(-2.0, 2.0), (-2.0, 2.0)], of_complex=True)
def multiply(x, y):
    return y, x


@partials(np.divide, operator.truediv, domain=[(-2.0, 2.0), (0.3, 2.0)], nonfinite=True, of_complex=True)
def divide(x, y, *, out):
    return 1.0 / y, -out / y


@partials(
    np.power,
    np.float_power,
    operator.pow,
    builtins.pow,
    math.pow,
    domain=[(0.3, 2.0), (-2.0, 3.0)],
    nonfinite=True,
    of_complex=True,
)
def power(x, y, *, out):
    """`x ** 0` is 1 also at 0, so its derivative is 0 there; `0 ** y` is 0 for y > 0, so the second one is 0.

    Where both are 0 the base is another one, not the exponent: with respect to y the first partial derivative has a
    derivative, also at 0.
    """
    of_y = out * np.log(x + (x == 0))
    if np.result_type(y).kind in "iub":
        return y * x ** (y - (y != 0)), of_y
    return y * (x + ((y == 0) & (x == 0))) ** (y - 1), of_y


@partials(np.remainder, operator.mod, domain=[(2.8, 3.0), (1.1, 1.2)], nonfinite=True)
def remainder(x, y):
    return 1.0, -(x // y)


@partials(np.fmod, math.fmod, math.remainder, domain=[(-3.0, -2.8), (1.1, 1.2)], nonfinite=True)
def fmod(x, y, *, out):
    return 1.0, (out - x) / y


@pullback(np.divmod, builtins.divmod, wrt=("x", "y"), shapes=[fixed(7.5), fixed(2.0)], broadcasts=True)
def divmod_(x, y, *, out, out_bar):
    """The quotient is piecewise constant."""
    return out_bar[1], -out[0] * out_bar[1]


@divmod_.pushforward
def divmod_pushforward(x, y, *, out, x_dot, y_dot):
    return None, x_dot - out[0] * y_dot


@pullback(np.modf, math.modf, shapes=[fixed(1.3)])
def modf(x, *, out_bar):
    """The whole part is piecewise constant."""
    return out_bar[0]


@modf.pushforward
def modf_pushforward(x, *, x_dot):
    return x_dot, None


@pullback(np.frexp, math.frexp, shapes=[fixed(1.3)])
def frexp(x, *, out, out_bar):
    """The exponent is piecewise constant."""
    return np.ldexp(out_bar[0], -out[1])


@frexp.pushforward
def frexp_pushforward(x, *, out, x_dot):
    return np.ldexp(x_dot, -out[1]), None


@partials(np.nextafter, math.nextafter, domain=[(-2.0, 2.0), (-2.0, 2.0)])
def nextafter(x, y):
    """The neighbour on the way to y, which moves along with x."""
    return 1.0, None


@partials(np.negative, operator.neg, domain=[(-2.0, 2.0)], of_complex=True)
def negative(x):
    return -1.0


@partials(np.positive, operator.pos, np.complex128, np.complex64, domain=[(-2.0, 2.0)], of_complex=True)
def positive(x):
    return 1.0


@partials(np.real_if_close, builtins.float, np.float64, np.float32, domain=[(-2.0, 2.0)])
def as_real(a):
    return 1.0


@partials(np.nan_to_num, domain=[(-2.0, 2.0)])
def nan_to_num(x):
    return np.isfinite(x)


@partials(np.fabs, math.fabs, domain=[(-2.0, -0.2)])
def fabs(x):
    return np.sign(x)


@partials(np.absolute, builtins.abs, operator.abs, domain=[(-2.0, -0.2)], of_complex=True)
def absolute(x, *, out):
    """Of a complex number its length; at 0 the derivative of least norm, 0."""
    if np.iscomplexobj(x):
        return np.conj(x) / (out + (out == 0.0))
    return np.sign(x)


@partials(np.copysign, math.copysign, domain=[(0.2, 2.0), (-2.0, -0.2)])
def copysign(x, y):
    return np.sign(x) * np.copysign(1.0, y), None


@linear(np.ldexp, math.ldexp, in_="x", shapes=[(), fixed(3)], broadcasts=True)
def ldexp(x, i, *, out_bar):
    return np.ldexp(out_bar, i)


@partials(np.heaviside, domain=[(-2.0, -0.2), (0.2, 2.0)])
def heaviside(x, at_zero):
    return None, x == 0.0


@partials(np.square, domain=[(-2.0, 2.0)], of_complex=True)
def square(x):
    return 2.0 * x


@partials(np.reciprocal, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def reciprocal(x, *, out):
    return -out * out


@partials(np.sqrt, math.sqrt, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def sqrt(x, *, out):
    return 0.5 / out


@partials(np.cbrt, math.cbrt, domain=[(0.3, 2.0)], nonfinite=True)
def cbrt(x, *, out):
    return 1.0 / (3.0 * out * out)


@partials(np.hypot, math.hypot, domain=[(0.3, 2.0), (-2.0, 2.0)])
def hypot(x, y, *, out):
    """Length of (x, y); at the origin the derivative of least norm, 0."""
    length = out + (out == 0.0)
    return x / length, y / length


# ---- exponential and logarithm -------------------------------------------------------------------------------------


@partials(np.exp, math.exp, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def exp(x, *, out):
    return out


@partials(np.exp2, math.exp2, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def exp2(x, *, out):
    return math.log(2.0) * out


@partials(np.expm1, math.expm1, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def expm1(x, *, out):
    return out + 1.0


@partials(np.log, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def log(x):
    return 1.0 / x


@partials(math.log, domain=[(0.3, 2.0), (1.5, 3.0)], nonfinite=True)
def math_log(x, base=None, *, out):
    """Logarithm to a base, the natural one by default."""
    if base is None:
        return 1.0 / x
    return 1.0 / (x * np.log(base)), -out / (base * np.log(base))


@partials(np.log2, math.log2, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def log2(x):
    return 1.0 / (math.log(2.0) * x)


@partials(np.log10, math.log10, domain=[(0.3, 2.0)], nonfinite=True, of_complex=True)
def log10(x):
    return 1.0 / (math.log(10.0) * x)


@partials(np.log1p, math.log1p, domain=[(-0.7, 2.0)], nonfinite=True, of_complex=True)
def log1p(x):
    return 1.0 / (1.0 + x)


@partials(np.logaddexp, domain=[(-2.0, 2.0), (-2.0, 2.0)])
def logaddexp(x, y, *, out):
    # Of two probabilities of zero each has weight one: what follows multiplies by zero, and must not meet a NaN.
    return np.exp(np.where(x == out, 0.0, x - out)), np.exp(np.where(y == out, 0.0, y - out))


@partials(np.logaddexp2, domain=[(-2.0, 2.0), (-2.0, 2.0)])
def logaddexp2(x, y, *, out):
    return np.exp2(np.where(x == out, 0.0, x - out)), np.exp2(np.where(y == out, 0.0, y - out))


# ---- trigonometric and hyperbolic ----------------------------------------------------------------------------------


@partials(np.sin, math.sin, domain=[(-2.0, 2.0)], of_complex=True, poles=True)
def sin(x):
    return np.cos(x)


@partials(np.cos, math.cos, domain=[(-2.0, 2.0)], of_complex=True, poles=True)
def cos(x):
    return -np.sin(x)


@partials(np.tan, math.tan, domain=[(-1.3, 1.3)], of_complex=True)
def tan(x, *, out):
    return 1.0 + out * out


@partials(np.arcsin, math.asin, domain=[(-0.9, 0.9)], nonfinite=True, of_complex=True)
def arcsin(x):
    if np.iscomplexobj(x):  # the signs of zeros say on which side of its cuts a number lies
        return 1.0 / (np.sqrt(-(x - 1.0)) * np.sqrt(-(-x - 1.0)))
    return 1.0 / np.sqrt(1.0 - x * x)


@partials(np.arccos, math.acos, domain=[(-0.9, 0.9)], nonfinite=True, of_complex=True)
def arccos(x):
    if np.iscomplexobj(x):
        return -1.0 / (np.sqrt(-(x - 1.0)) * np.sqrt(-(-x - 1.0)))
    return -1.0 / np.sqrt(1.0 - x * x)


@partials(np.arctan, math.atan, domain=[(-2.0, 2.0)], of_complex=True, poles=True)
def arctan(x):
    return 1.0 / (1.0 + x * x)


@partials(np.arctan2, math.atan2, domain=[(0.2, 2.0), (-2.0, 2.0)], nonfinite=True)
def arctan2(y, x):
    """Angle of the point (x, y); it has no derivative at the origin (NaN)."""
    q = x * x + y * y
    return x / q, -y / q


@partials(np.sinh, math.sinh, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def sinh(x):
    return np.cosh(x)


@partials(np.cosh, math.cosh, domain=[(-2.0, 2.0)], nonfinite=True, of_complex=True)
def cosh(x):
    return np.sinh(x)


@partials(np.tanh, math.tanh, domain=[(-2.0, 2.0)], of_complex=True)
def tanh(x, *, out):
    return 1.0 - out * out


@partials(np.arcsinh, math.asinh, domain=[(-2.0, 2.0)], of_complex=True, poles=True)
def arcsinh(x):
    if np.iscomplexobj(x):
        return 1.0 / np.sqrt(-(-(x * x) - 1.0))
    return 1.0 / np.sqrt(x * x + 1.0)


@partials(np.arccosh, math.acosh, domain=[(1.2, 3.0)], nonfinite=True, of_complex=True)
def arccosh(x):
    if np.iscomplexobj(x):
        return 1.0 / (np.sqrt(x - 1.0) * np.sqrt(-(-x - 1.0)))
    return 1.0 / np.sqrt(x * x - 1.0)


@partials(np.arctanh, math.atanh, domain=[(-0.9, 0.9)], nonfinite=True, of_complex=True)
def arctanh(x):
    return 1.0 / (1.0 - x * x)


@partials(np.deg2rad, np.radians, math.radians, domain=[(-180.0, 180.0)])
def radians(x):
    return math.pi / 180.0


@partials(np.rad2deg, np.degrees, math.degrees, domain=[(-2.0, 2.0)])
def degrees(x):
    return 180.0 / math.pi


@partials(np.sinc, domain=[(0.1, 2.0)])
def sinc(x, *, out):
    """sin(pi x) / (pi x); the difference of two close numbers near 0 gives way to the power series."""
    q = math.pi * math.pi * x * x
    series = -(math.pi * math.pi / 3.0) * x * (1.0 - q / 10.0 * (1.0 - q / 28.0 * (1.0 - q / 54.0)))
    return np.where(q < 0.01, series, (np.cos(math.pi * x) - out) / (x + (x == 0.0)))


@expands(np.i0, domain=[(-2.0, 2.0)])
def i0(x):
    """The mean of exp(x cos t) over half a turn, by the midpoint rule with 128 points: exact to rounding up to 700."""
    nodes = np.astype(np.cos((np.arange(128) + 0.5) * (math.pi / 128.0)), np.result_type(x))
    return np.mean(np.exp(np.expand_dims(x, -1) * nodes), axis=-1)


@pullback(strong_mul, wrt=("cotangent", "partial"), shapes=[(4,), (4,)], of_complex=True)
def strong_mul_(cotangent, partial, *, out_bar):
    return strong_mul(out_bar, partial), strong_mul(cotangent, out_bar)


@strong_mul_.pushforward
def strong_mul_pushforward(cotangent, partial, *, cotangent_dot, partial_dot):
    return strong_mul(cotangent_dot, partial) + strong_mul(cotangent, partial_dot)


@linear(guarded, in_="product", shapes=[(4,), (4,)], of_complex=True)
def guarded_(product, used, *, out_bar):
    return guarded(out_bar, used)


# ---- selection -----------------------------------------------------------------------------------------------------


@linear(np.where, in_=("x", "y"), shapes=[(4,), (4,), (4,)], of_complex=True)
def where(condition, x, y, *, out_bar):
    return np.where(condition, out_bar, 0.0), np.where(condition, 0.0, out_bar)


@pullback(np.maximum, wrt=("x", "y"), shapes=[(4,), (4,)])
def maximum(x, y, *, out_bar):
    """The larger one; a tie is shared half and half."""
    x_bar = np.where(x > y, out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    y_bar = np.where(x < y, out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    return x_bar, y_bar


@maximum.pushforward
def maximum_pushforward(x, y, *, x_dot, y_dot):
    return np.where(x > y, x_dot, np.where(x == y, 0.5 * (x_dot + y_dot), y_dot))


@pullback(np.minimum, wrt=("x", "y"), shapes=[(4,), (4,)])
def minimum(x, y, *, out_bar):
    """The smaller one; a tie is shared half and half."""
    x_bar = np.where(x < y, out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    y_bar = np.where(x > y, out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    return x_bar, y_bar


@minimum.pushforward
def minimum_pushforward(x, y, *, x_dot, y_dot):
    return np.where(x < y, x_dot, np.where(x == y, 0.5 * (x_dot + y_dot), y_dot))


@pullback(np.fmax, wrt=("x", "y"), shapes=[(4,), (4,)])
def fmax(x, y, *, out_bar):
    """As `maximum`, but a number wins against NaN."""
    x_bar = np.where((x > y) | np.isnan(y), out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    y_bar = np.where((x < y) | np.isnan(x), out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    return x_bar, y_bar


@fmax.pushforward
def fmax_pushforward(x, y, *, x_dot, y_dot):
    return np.where((x > y) | np.isnan(y), x_dot, np.where(x == y, 0.5 * (x_dot + y_dot), y_dot))


@pullback(np.fmin, wrt=("x", "y"), shapes=[(4,), (4,)])
def fmin(x, y, *, out_bar):
    """As `minimum`, but a number wins against NaN."""
    x_bar = np.where((x < y) | np.isnan(y), out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    y_bar = np.where((x > y) | np.isnan(x), out_bar, np.where(x == y, 0.5 * out_bar, 0.0))
    return x_bar, y_bar


@fmin.pushforward
def fmin_pushforward(x, y, *, x_dot, y_dot):
    return np.where((x < y) | np.isnan(y), x_dot, np.where(x == y, 0.5 * (x_dot + y_dot), y_dot))


@partials(np.clip, domain=[(-2.0, 2.0), (-1.0, -0.5), (0.5, 1.0)])
def clip(a, a_min=None, a_max=None):
    """Limits; at a bound the derivative is 1."""
    if a_min is None and a_max is None:
        return 1.0, None, None
    if a_max is None:
        return a >= a_min, a < a_min, None
    if a_min is None:
        return a <= a_max, None, a > a_max
    return (a >= a_min) & (a <= a_max), (a < a_min) & (a_min <= a_max), (a > a_max) | (a_min > a_max)
