"""Reparameterized sampling: random draws decomposed into standard draws, differentiable by their parameters.

A standard draw is a constant: it runs once, in program order, and the derivative uses its value.  So a
normal variate is `loc + scale * z` of a standard one, as in NumPy's own code, and the derivative by `scale` is `z`.
A body takes the generator first and the arguments of NumPy's method; it is inlined at the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tapegen.rules.helpers import require
from tapegen.rules.registry import refused

Body = TypeVar("Body", bound=Callable[..., Any])

_WRITTEN: dict[Any, Callable[..., Any]] = {}
_OLD, _NEW = np.random.RandomState, np.random.Generator
_BOTH = (_NEW, _OLD)


def written(*kinds: type) -> Callable[[Body], Body]:
    """Register the decomposition of the method of the same name of these generators."""

    def register(body: Body) -> Body:
        _WRITTEN.update((getattr(kind, body.__name__), body) for kind in kinds)
        return body

    return register


def body_of(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The decomposition of a method of a generator; None if the whole draw is a constant."""
    return _WRITTEN.get(func)


def all_written() -> tuple[Callable[..., Any], ...]:
    """The methods that are differentiable by their parameters."""
    return tuple(_WRITTEN)


OPTIONS = frozenset("self size dtype out method axis replace shuffle endpoint check_valid tol".split())
"""Parameters of draws that do not belong to the distribution."""
_DECISIVE = {"choice": ("a",), "multivariate_normal": ("mean",)}
"""Parameters by which a draw is differentiable, where these are not all of them."""

_SOME = {"gamma": ("scale",)}
"""Parameters that have a derivative, where others that may carry one are refused."""
NOT_FOLLOWED = frozenset({"get_state", "set_state", "spawn", "bytes"})
"""Methods that get or set the state."""


def decisive(func: Callable[..., Any]) -> tuple[str, ...]:
    """Parameters of a method that may carry a derivative."""
    found = _DECISIVE.get(func.__name__)
    return found or tuple(name for name in inspect.signature(func).parameters if name not in OPTIONS)


def differentiable_by(func: Callable[..., Any]) -> tuple[str, ...]:
    """Parameters of a method by which it is differentiable."""
    return _SOME.get(func.__name__) or decisive(func)


# ---- parameters ----------------------------------------------------------------------------------------------------


def not_negative(value, name):
    """Check as NumPy does, which treats -0.0 as negative."""
    if np.ndim(value) == 0:
        if value < 0 or (value == 0 and np.signbit(value)):
            raise ValueError(name + " < 0")
    elif np.any(np.signbit(value) & ~np.isnan(value)):
        raise ValueError(name + " < 0")


def positive(value, name):
    if np.ndim(value) == 0:
        if value <= 0:
            raise ValueError(name + " <= 0")
    elif np.any(value <= 0):
        raise ValueError(name + " <= 0")


def finite(width):
    if np.ndim(width) == 0:
        if not np.isfinite(width):
            raise OverflowError("Range exceeds valid bounds")
    elif not np.all(np.isfinite(width)):
        raise OverflowError("Range exceeds valid bounds")


def size_of(size, a, b=0.0):
    """The shape of a draw with these parameters."""
    if size is not None:
        return size
    if np.ndim(b) == 0:
        return None if np.ndim(a) == 0 else np.shape(a)
    if np.ndim(a) == 0:
        return np.shape(b)
    return np.shape(a + b)


def drawn(value, z, size, a, b=0.0):
    """The value, after a check that the parameters broadcast to the requested size."""
    if size is None:
        return float(value) if np.ndim(value) == 0 else value
    if np.ndim(a) + np.ndim(b) > 0 and np.shape(value) != np.shape(z):
        raise ValueError("Output size is not compatible with broadcast dimensions of inputs.")
    return np.asarray(value) if np.ndim(value) == 0 else value


# ---- location and scale --------------------------------------------------------------------------------------------


@written(*_BOTH)
def normal(self, loc=0.0, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.standard_normal(size_of(size, loc, scale))
    return drawn(loc + scale * z, z, size, loc, scale)


@written(*_BOTH)
def laplace(self, loc=0.0, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.laplace(0.0, 1.0, size_of(size, loc, scale))
    return drawn(loc + scale * z, z, size, loc, scale)


@written(*_BOTH)
def logistic(self, loc=0.0, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.logistic(0.0, 1.0, size_of(size, loc, scale))
    return drawn(loc + scale * z, z, size, loc, scale)


@written(*_BOTH)
def gumbel(self, loc=0.0, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.gumbel(0.0, 1.0, size_of(size, loc, scale))
    return drawn(loc + scale * z, z, size, loc, scale)


@written(*_BOTH)
def exponential(self, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.standard_exponential(size_of(size, scale))
    return drawn(scale * z, z, size, scale)


@written(*_BOTH)
def rayleigh(self, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.rayleigh(1.0, size_of(size, scale))
    return drawn(scale * z, z, size, scale)


@written(*_BOTH)
def lognormal(self, mean=0.0, sigma=1.0, size=None):
    not_negative(sigma, "sigma")
    z = self.standard_normal(size_of(size, mean, sigma))
    return drawn(np.exp(mean + sigma * z), z, size, mean, sigma)


@written(_NEW)
def uniform(self, low=0.0, high=1.0, size=None):
    width = high - low
    not_negative(width, "high - low")
    finite(width)
    u = self.random(size_of(size, low, high))
    return drawn(low + width * u, u, size, low, high)


def _uniform(self, low=0.0, high=1.0, size=None):
    width = high - low
    finite(width)
    u = self.random_sample(size_of(size, low, high))
    return drawn(low + width * u, u, size, low, high)


_WRITTEN[_OLD.uniform] = _uniform


@written(*_BOTH)
def triangular(self, left, mode, right, size=None):
    if np.any(left > mode) or np.any(mode > right) or np.any(left == right):
        raise ValueError("left > mode, mode > right or left == right")
    u = self.random(size_of(size, left + mode, right))
    base, below = right - left, mode - left
    rises = u <= below / base
    # on the other side the root would be taken of 0, where it has no derivative
    up = np.sqrt(np.where(rises, u, 1.0) * (below * base))
    down = np.sqrt(np.where(rises, 1.0, 1.0 - u) * ((right - mode) * base))
    return drawn(np.where(rises, left + up, right - down), u, size, left + mode, right)


# ---- shape ---------------------------------------------------------------------------------------------------------


@written(*_BOTH)
def weibull(self, a, size=None):
    positive(a, "a")
    z = self.standard_exponential(size_of(size, a))
    return drawn(np.power(z, 1.0 / a), z, size, a)


@written(_NEW)
def pareto(self, a, size=None):
    positive(a, "a")
    z = self.standard_exponential(size_of(size, a))
    return drawn(np.expm1(z / a), z, size, a)


@written(_NEW)
def power(self, a, size=None):
    positive(a, "a")
    z = self.standard_exponential(size_of(size, a))
    return drawn(np.power(-np.expm1(-z), 1.0 / a), z, size, a)


def _pareto(self, a, size=None):
    positive(a, "a")
    z = self.standard_exponential(size_of(size, a))
    return drawn(np.exp(z / a) - 1.0, z, size, a)


def _power(self, a, size=None):
    positive(a, "a")
    z = self.standard_exponential(size_of(size, a))
    return drawn(np.power(1.0 - np.exp(-z), 1.0 / a), z, size, a)


_WRITTEN[_OLD.pareto] = _pareto  # the legacy generators use another formula, which differs in the last digit
_WRITTEN[_OLD.power] = _power


@written(*_BOTH)
def gamma(self, shape, scale=1.0, size=None):
    not_negative(scale, "scale")
    z = self.standard_gamma(shape, size_of(size, shape, scale))
    return drawn(scale * z, z, size, shape, scale)


@written(*_BOTH)
def multivariate_normal(self, mean, cov, size=None, check_valid="warn", tol=1e-8, *, method=None):
    n = np.shape(mean)[0]
    if method is None:
        z = self.multivariate_normal(np.zeros(n), cov, size, check_valid, tol)
    else:
        z = self.multivariate_normal(np.zeros(n), cov, size, check_valid, tol, method=method)
    return mean + z


# ---- shuffling -----------------------------------------------------------------------------------------------------


@written(_NEW)
def shuffle(self, x, axis=0):
    x[...] = np.take(x, self.permutation(np.shape(x)[axis]), axis=axis)


@written(_NEW)
def permutation(self, x, axis=0):
    return np.take(x, self.permutation(np.shape(x)[axis]), axis=axis)


def _shuffle(self, x):
    x[...] = x[self.permutation(np.shape(x)[0])]


def _permutation(self, x):
    return x[self.permutation(np.shape(x)[0])]


_WRITTEN[_OLD.shuffle] = _shuffle
_WRITTEN[_OLD.permutation] = _permutation


@written(_NEW)
def permuted(self, x, *, axis=None, out=None):
    require(out is None, "'out=' of permuted is not supported here.", "Assign the result: a[...] = rng.permuted(x).")
    if axis is None:
        return np.reshape(np.ravel(x)[self.permuted(np.arange(np.size(x)))], np.shape(x))
    places = np.zeros(np.shape(x), np.int64)
    n = np.shape(x)[axis]
    along = (1,) * (axis % np.ndim(x)) + (n,) + (1,) * (np.ndim(x) - axis % np.ndim(x) - 1)
    places[...] = np.reshape(np.arange(n), along)
    return np.take_along_axis(x, self.permuted(places, axis=axis), axis)


@written(_NEW)
def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
    return np.take(a, self.choice(np.shape(a)[axis], size, replace, p, 0, shuffle), axis=axis)


def _choice(self, a, size=None, replace=True, p=None):
    return a[self.choice(np.shape(a)[0], size, replace, p)]


_WRITTEN[_OLD.choice] = _choice

# ---- without derivative --------------------------------------------------------------------------------------------

_COUNTS = (
    "binomial geometric hypergeometric logseries multinomial negative_binomial poisson zipf "
    "integers multivariate_hypergeometric choice randint random_integers"
)
_REJECTED = "beta chisquare dirichlet f noncentral_chisquare noncentral_f standard_gamma standard_t vonmises wald"


def _refuse(names: str, reason: str, advice: str) -> None:
    for name in names.split():
        refused(*(getattr(kind, name) for kind in _BOTH if hasattr(kind, name)), reason=reason, advice=advice)


_refuse(
    _COUNTS,
    "it draws whole numbers, which jump where its parameters change.",
    "Differentiate an expected value: weigh the values by their probabilities, or use the derivative of the log "
    "probability (scipy.stats has rules); tg.stop_gradient(parameter) takes the draw as a constant.",
)
_refuse(
    _REJECTED,
    "it draws by rejection, and what is accepted is no formula in its parameters.",
    "Use a distribution whose draws scale or shift (normal, gamma by its scale, lognormal, weibull), or the derivative "
    "of the log density (scipy.stats has rules); tg.stop_gradient(parameter) takes the draw as a constant.",
)
_refuse(
    "multivariate_normal",
    "which factor of the covariance it uses is not specified.",
    "Write mean + np.linalg.cholesky(cov) @ rng.standard_normal(n).",
)
