"""The functions of the math module."""
import math


def at_top(x, y):
    a = math.sin(x) + math.cos(y) + math.tan(x) + math.asin(x * 0.5) + math.acos(y * 0.5) + math.atan(x)
    b = math.sinh(x) + math.cosh(y) + math.tanh(x) + math.asinh(x) + math.acosh(y + 1.0) + math.atanh(x * 0.5)
    c = math.exp(x) + math.expm1(y) + math.log(x) + math.log1p(y) + math.log2(x) + math.log10(y) + math.log(x, 3.0)
    d = math.sqrt(x) + math.pow(x, y) + math.hypot(x, y) + math.atan2(x, y) + math.fabs(-x)
    e = math.erf(x) + math.erfc(y) + math.gamma(x + 1.0) + math.lgamma(y + 1.0)
    return a * b + c * d + e * math.pi


def in_for(x, y):
    s = 0.0
    for k in range(1, 4):
        s += math.exp(-k * x) * math.cos(k * y) / math.factorial(k)
    return s


def in_while(x, y):
    while math.fabs(math.sin(x) - y) > 0.3:
        x = x - 0.4 * (math.sin(x) - y) / math.cos(x)
    return x * y


def in_branch(x, y):
    x = math.fmod(x * 7.0, y) + math.degrees(x) * 0.02 + math.radians(y) - x
    if math.isfinite(x) and math.floor(x * 10.0) % 2 == 1:
        return math.copysign(x * y, -1.0)
    return x / y


ARGS = (0.83, 0.9)
