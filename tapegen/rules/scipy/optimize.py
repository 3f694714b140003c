"""Roots, fixed points and minima (`scipy.optimize`), differentiated by the implicit function theorem.

Derivatives are those of the solution with respect to free variables of the function and `args`.  The start has none: it
selects the solution, which is locally constant.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.rules.helpers import as_float64, require
from tapegen.rules.implicit import Found, as_args, closed, solution
from tapegen.rules.registry import expands


def vector_of(x0):
    """A start as a vector of floats, without a derivative."""
    start = stop_gradient(np.atleast_1d(as_float64(x0)))
    require(np.ndim(start) == 1, "the unknowns are no vector.", "Pass a vector, and reshape it in the function.")
    return start


def found_by(run, kind, values, slopes, start, options):
    """What a solver finds, and whether it has converged; `slopes` is the user's Jacobian or gradient, or None."""
    function, floats, others, _ = closed(values, start)
    slope, reads = None, ()
    if slopes is not None:
        slope, more, rest, _ = closed(slopes, start)
        reads = stop_gradient(more) + rest
    return solution(run, kind, function, floats, others, slope, reads, start, options)


# ---- vectors ---------------------------------------------------------------------------------------------------------


def find_root(function, slope, start, options):
    method, tol = options
    found = optimize.root(function, start, method=method, jac=slope, tol=tol)
    return found.x, bool(found.success)


@expands(optimize.root, written=True)
def root(fun, x0, args=(), method="hybr", jac=None, tol=None, callback=None, options=None):
    require(callback is None and options is None, "these options of root have no rule.", "Give tol= and method= alone.")
    require(jac is None or callable(jac), "jac= is no function.", "Leave it out, or pass a function.")
    args = as_args(args)
    start = vector_of(x0)

    def values(x):
        return np.atleast_1d(as_float64(fun(x, *args)))

    def slopes(x):
        return as_float64(jac(x, *args))

    x, success = found_by(find_root, "root", values, None if jac is None else slopes, start, (method, tol))
    return Found(x=x, fun=values(x), success=success)


def find_fixed_point(function, slope, start, options):
    xtol, maxiter, method = options
    found = optimize.fixed_point(function, start, xtol=xtol, maxiter=maxiter, method=method)
    return found, True


@expands(optimize.fixed_point, written=True)
def fixed_point(func, x0, args=(), xtol=1e-08, maxiter=500, method="del2"):
    args = as_args(args)
    start = stop_gradient(as_float64(x0))
    require(np.ndim(start) <= 1, "the unknowns are no vector.", "Pass a vector, and reshape it in the function.")

    def values(x):
        return func(x, *args)

    return found_by(find_fixed_point, "fixed point", values, None, start, (xtol, maxiter, method))[0]


def find_minimum(function, slope, start, options):
    method, tol = options
    found = optimize.minimize(function, start, method=method, jac=slope, tol=tol)
    return found.x, bool(found.success)


@expands(optimize.minimize, written=True)
def minimize(
    fun,
    x0,
    args=(),
    method=None,
    jac=None,
    hess=None,
    hessp=None,
    bounds=None,
    constraints=(),
    tol=None,
    callback=None,
    options=None,
):
    require(
        bounds is None and len(constraints) == 0,
        "a minimum on the boundary is no point where the gradient is zero.",
        "Leave bounds and constraints out, and write them into the unknowns (np.exp, np.tanh).",
    )
    require(
        hess is None and hessp is None and callback is None and options is None,
        "these options of minimize have no rule.",
        "Give jac=, tol= and method= alone.",
    )
    require(jac is None or callable(jac), "jac= is no function.", "Leave it out, or pass a function.")
    args = as_args(args)
    start = vector_of(x0)

    def values(x):
        return fun(x, *args)

    def slopes(x):
        return as_float64(jac(x, *args))

    x, success = found_by(find_minimum, "minimum", values, None if jac is None else slopes, start, (method, tol))
    return Found(x=x, fun=values(x), success=success)


_RTOL = 4.0 * float(np.finfo(np.float64).eps)  # of brentq and bisect

# ---- scalars ---------------------------------------------------------------------------------------------------------


def number_found(run, kind, func, args, start, options, fprime=None):
    """A scalar that a solver finds."""
    start = stop_gradient(np.float64(start))

    def values(x):
        return func(x, *args)

    def slopes(x):
        return fprime(x, *args)

    return found_by(run, kind, values, None if fprime is None else slopes, start, options)


def between(find, f, a, b, args, xtol, rtol, maxiter, full_output, disp):
    require(not full_output and disp is True, "full_output= and disp= have no rule here.", "Leave them out.")
    options = (stop_gradient(b), xtol, rtol, maxiter)
    return float(number_found(find, "root", f, as_args(args), a, options)[0])


def find_by_brentq(function, slope, start, options):
    end, xtol, rtol, maxiter = options
    return optimize.brentq(function, start, end, xtol=xtol, rtol=rtol, maxiter=maxiter), True


@expands(optimize.brentq, written=True)
def brentq(f, a, b, args=(), xtol=2e-12, rtol=_RTOL, maxiter=100, full_output=False, disp=True):
    return between(find_by_brentq, f, a, b, args, xtol, rtol, maxiter, full_output, disp)


def find_by_bisect(function, slope, start, options):
    end, xtol, rtol, maxiter = options
    return optimize.bisect(function, start, end, xtol=xtol, rtol=rtol, maxiter=maxiter), True


@expands(optimize.bisect, written=True)
def bisect(f, a, b, args=(), xtol=2e-12, rtol=_RTOL, maxiter=100, full_output=False, disp=True):
    return between(find_by_bisect, f, a, b, args, xtol, rtol, maxiter, full_output, disp)


def find_by_newton(function, slope, start, options):
    tol, maxiter, x1, rtol = options
    return optimize.newton(function, start, fprime=slope, tol=tol, maxiter=maxiter, x1=x1, rtol=rtol), True


@expands(optimize.newton, written=True)
def newton(
    func,
    x0,
    fprime=None,
    args=(),
    tol=1.48e-08,
    maxiter=50,
    fprime2=None,
    x1=None,
    rtol=0.0,
    full_output=False,
    disp=True,
):
    require(
        fprime2 is None and not full_output and disp is True,
        "these options of newton have no rule.",
        "Leave fprime2, full_output and disp out.",
    )
    require(np.ndim(x0) == 0, "newton of a vector has no rule.", "Use scipy.optimize.root.")
    options = (tol, maxiter, None if x1 is None else stop_gradient(x1), rtol)
    return number_found(find_by_newton, "root", func, as_args(args), x0, options, fprime)[0]


def find_number(function, slope, start, options):
    method, bracket, x1, xtol, rtol, maxiter = options
    x0 = start if bracket is None else None
    found = optimize.root_scalar(
        function, method=method, bracket=bracket, fprime=slope, x0=x0, x1=x1, xtol=xtol, rtol=rtol, maxiter=maxiter
    )
    return found.root, bool(found.converged)


@expands(optimize.root_scalar, written=True)
def root_scalar(
    f,
    args=(),
    method=None,
    bracket=None,
    fprime=None,
    fprime2=None,
    x0=None,
    x1=None,
    xtol=None,
    rtol=None,
    maxiter=None,
    options=None,
):
    require(
        fprime2 is None and options is None and (fprime is None or callable(fprime)),
        "these options of root_scalar have no rule.",
        "Leave fprime2 and options out, and give fprime= as a function.",
    )
    start = x0
    if bracket is not None:
        bracket = (stop_gradient(bracket[0]), stop_gradient(bracket[1]))
        start = bracket[0]
    given = (method, bracket, None if x1 is None else stop_gradient(x1), xtol, rtol, maxiter)
    x, converged = number_found(find_number, "root", f, as_args(args), start, given, fprime)
    return Found(root=x if bracket is None else float(x), converged=converged)


def find_least(function, slope, start, options):
    bracket, bounds, method, tol = options
    found = optimize.minimize_scalar(function, bracket=bracket, bounds=bounds, method=method, tol=tol)
    return found.x, bool(found.success)


@expands(optimize.minimize_scalar, written=True)
def minimize_scalar(fun, bracket=None, bounds=None, args=(), method=None, tol=None, options=None):
    """Within bounds too: where the gradient at what is found is not zero, its derivative is NaN."""
    require(options is None, "these options of minimize_scalar have no rule.", "Give tol= alone.")
    args = as_args(args)
    given = (None if bracket is None else stop_gradient(tuple(bracket)), bounds, method, tol)
    x, success = number_found(find_least, "minimum", fun, args, 0.5, given)
    return Found(x=x, fun=fun(x, *args), success=success)


# ---- test functions --------------------------------------------------------------------------------------------------


@expands(optimize.rosen, shapes=[(4,)], written=True)
def rosen(x):
    x = 1.0 * np.asarray(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2, axis=0)


@expands(optimize.rosen_der, shapes=[(4,)], written=True)
def rosen_der(x):
    x = 1.0 * np.asarray(x)
    der = np.zeros_like(x)
    der[1:] += 200.0 * (x[1:] - x[:-1] ** 2)
    der[:-1] += -400.0 * (x[1:] - x[:-1] ** 2) * x[:-1] - 2.0 * (1.0 - x[:-1])
    return der
