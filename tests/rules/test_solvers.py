"""Functions of scipy that call functions, or make them: roots, minima, integrals, motion, curves."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy import integrate, interpolate, optimize

import tapegen as tg
from tapegen.errors import NotDifferentiable


def root(p, q):
    def equations(x, s):
        return [x[0] ** 2 + s * x[1] - p - 2.0, x[0] - x[1] ** 3 + q[0]]

    found = optimize.root(equations, [1.0, 1.0], args=(q[1],), tol=1e-10)
    return found.x[0] * found.x[1] if found.success else 0.0


def root_with_slope(p, q):
    found = optimize.root(lambda x: x**2 - p * q, [1.0, 1.0], jac=lambda x: np.diag(2.0 * x), tol=1e-10)
    return np.sum(found.x**3) + np.sum(found.fun)


def brentq(p, q):
    return optimize.brentq(lambda x, s: x**3 + s * x - p, q[0] - 1.0, 4.0, args=(p * q[1],)) * p


def bisect(p, q):
    return optimize.bisect(lambda x: x**3 + p * x - q[0], -1.0, 4.0) ** 2


def newton(p, q):
    return optimize.newton(lambda x: x**3 + p * x - q[0], 1.0) ** 2


def newton_with_slope(p, q):
    return optimize.newton(lambda x: x**3 + p * x - q[0], 1.0, lambda x: 3.0 * x**2 + p) ** 2


def root_scalar(p, q):
    found = optimize.root_scalar(lambda x: x**3 + p * x - q[0], bracket=[-1.0, q[1] + 2.0])
    return found.root


def fixed_point(p, q):
    return optimize.fixed_point(lambda x: np.cos(p * x) * q[0], q[1], xtol=1e-13) + 0.0


def fixed_points(p, q):
    return np.sum(optimize.fixed_point(lambda x: np.cos(p * x) * q, q, xtol=1e-13) ** 2)


def minimize(p, q):
    def height(x):
        return (x[0] - p) ** 2 + p * (x[1] - x[0] ** 2) ** 2 + 0.1 * x[0] ** 4 * q[0]

    def slope(x):
        bend = 2.0 * p * (x[1] - x[0] ** 2)
        return np.array([2.0 * (x[0] - p) - 2.0 * x[0] * bend + 0.4 * x[0] ** 3 * q[0], bend])

    found = optimize.minimize(height, [q[1], 1.0], jac=slope, tol=1e-11)
    return found.x[0] * found.x[1] + found.fun


def minimize_scalar(p, q):
    found = optimize.minimize_scalar(lambda x: np.cosh(x - p) + q[0] * x**2, tol=1e-12)
    return found.x * 1e-3 + found.fun


def quad(p, q):
    return integrate.quad(lambda x: np.exp(-p * x) * np.sin(q[0] * x), q[0], p)[0] * q[1]


def quad_of_everything(p, q):
    return integrate.quad(lambda x, s: math.exp(-s * x * x) * q[0], -np.inf, np.inf, args=(p,))[0]


def quad_of_arrays(p, q):
    found = integrate.quad_vec(lambda x: np.array([np.cos(p * x), x ** q[0]]), 0.1, p)[0]
    return found[0] * found[1] * q[1]


def odeint(p, q):
    def slope(y, t, s):
        return [p * y[0] - y[0] * y[1] * np.cos(t), -s * y[1] + q[1] * y[0]]

    found = integrate.odeint(slope, [q[0], p], np.array([0.0, 0.4, p]), args=(1.1,), rtol=1e-11, atol=1e-11)
    return np.sum(found**2)


def odeint_of_a_number(p, q):
    times = np.array([0.0, 0.3, p])
    found = integrate.odeint(lambda t, y: -q[1] * y * t, q[0], times, tfirst=True, rtol=1e-11, atol=1e-11)
    return found[2, 0] + found[1, 0] ** 2


def solve_ivp(p, q):
    def slope(t, y, s):
        return [p * y[0] - y[0] * y[1] * np.cos(t), -s * y[1] + q[1] * y[0]]

    found = integrate.solve_ivp(slope, (0.0, p), [q[0], p], args=(1.1,), rtol=1e-9, atol=1e-9)
    return np.sum(found.y[:, -1] ** 2) + found.t[-1]


def solve_ivp_at_times(p, q):
    times = np.array([1.2, 0.9, 0.3])
    found = integrate.solve_ivp(
        lambda t, y: -p * y + np.sin(q[1] * t), (p, 0.2), q, method="RK23", t_eval=times, rtol=1e-7, atol=1e-9
    )
    return np.sum(found.y[0] * found.y[1])


def solve_ivp_of_high_order(p, q):
    found = integrate.solve_ivp(lambda t, y: q[1] * np.cos(y * t), (0.0, 1.0), [p], method="DOP853", rtol=1e-9)
    return found.y[0, -1] * q[0] if found.success else 0.0


X = np.array([0.0, 0.7, 1.5, 2.0, 3.1])
Y = np.array([1.0, -0.5, 0.3, 2.0, 0.2])
SURFACE = np.add.outer(Y, np.sin(Y[:4])) * np.exp(-Y)[:, None]
SPLINE = interpolate.CubicSpline(X, Y)
CLOSED = interpolate.CubicSpline(np.append(X, 4.0), np.append(Y, 1.0), bc_type="periodic")
COLUMNS = interpolate.CubicSpline(X, np.stack([Y, Y**2], 1))
LINE = interpolate.interp1d(X, Y)
LINES = interpolate.interp1d(X, np.stack([Y, Y**2]), bounds_error=False, fill_value=(0.5, 2.0))
GRID = interpolate.RegularGridInterpolator((X, X[:4]), SURFACE)


def points(p, q):
    """Where the curves are evaluated, and what they go through."""
    return X + 0.01 * q[1] * X**2, Y * p, np.array([0.3 * p, 1.2, q[0] + 0.2])


def cubic_spline(p, q):
    x, y, t = points(p, q)
    return np.sum(interpolate.CubicSpline(x, y)(t) ** 2)


def cubic_spline_with_ends(p, q):
    x, y, t = points(p, q)
    first = interpolate.CubicSpline(x, y, bc_type="natural")
    return first(t[0]) * interpolate.CubicSpline(x, y, bc_type=("clamped", (2, 0.4)))(t[1], 1)


def cubic_splines_of_few_points(p, q):
    x, y, t = points(p, q)
    return np.sum(interpolate.CubicSpline(x[:3], y[:3])(t)) * np.sum(interpolate.CubicSpline(x[:2], y[:2])(t))


def splines_from_outside(p, q):
    t = points(p, q)[2]
    return SPLINE(t).sum() + np.sum(COLUMNS(t, 1) ** 2) + CLOSED(t + 5.0).sum()


def integrals_of_splines(p, q):
    x, y, t = points(p, q)
    made = interpolate.CubicSpline(x, np.stack([y, y * y], 1), bc_type="natural").integrate(t[0], t[2] + 5.0)
    return np.sum(made**2) + interpolate.CubicSpline(x, y).integrate(t[1], t[0]) + SPLINE.integrate(0.2, t[2])


def lines(p, q):
    x, y, t = points(p, q)
    beyond = interpolate.interp1d(x, y, fill_value="extrapolate")(t[0] + 5.0)
    rows = interpolate.interp1d(x[::-1], np.stack([y, y * y]), kind="cubic")(t)
    return np.sum(interpolate.interp1d(x, y)(t) ** 2) + beyond + rows[0] @ rows[1]


def steps(p, q):
    x, y, t = points(p, q)
    found = [interpolate.interp1d(x, y, kind=kind)(t) for kind in ("nearest", "nearest-up", "previous", "next")]
    return np.sum(found[0] * found[1] + found[2] * found[3])


def lines_from_outside(p, q):
    t = points(p, q)[2]
    return LINE(t).sum() + np.sum(LINES(t * 2.0 - 1.0) ** 2)


def grids(p, q):
    x, y, t = points(p, q)
    made = interpolate.RegularGridInterpolator((x, x[:4]), np.multiply.outer(y, y[1:]))
    beyond = interpolate.RegularGridInterpolator((x,), np.stack([y, y * y], 1), bounds_error=False, fill_value=None)
    near = interpolate.RegularGridInterpolator((x,), y, method="nearest")
    return np.sum(made(np.stack([t, t * 0.5], -1)) ** 2) + np.sum(beyond(t[:, None] + 2.0)) + np.sum(near((t,)))


def grids_from_outside(p, q):
    t = points(p, q)[2]
    return np.sum(GRID((t, t * 0.4)) ** 2) + GRID([t[0], t[1]])[0]


SOLVERS = [
    *(root, root_with_slope, brentq, bisect, newton, newton_with_slope, root_scalar, fixed_point, fixed_points),
    *(minimize, minimize_scalar, quad, quad_of_everything, quad_of_arrays),
    *(odeint, odeint_of_a_number, solve_ivp, solve_ivp_at_times, solve_ivp_of_high_order),
]
CURVES = [
    *(cubic_spline, cubic_spline_with_ends, cubic_splines_of_few_points, splines_from_outside),
    integrals_of_splines,
    *(lines, steps, lines_from_outside, grids, grids_from_outside),
]
P, Q = 1.3, np.array([0.7, 1.1])


def named(func: Callable) -> str:
    return func.__name__


def slopes(function: Callable) -> np.ndarray:
    """The gradient by p, q[0] and q[1], by differences of the fourth order."""
    h = 1e-3
    found = []
    for step in np.eye(3):
        values = [function(P + k * h * step[0], Q + k * h * step[1:]) for k in (-2, -1, 1, 2)]
        found.append((values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * h))
    return np.array(found)


@pytest.mark.parametrize("function", SOLVERS + CURVES, ids=named)
def test_value_and_both_modes(function: Callable) -> None:
    f = tg.differentiable(function, backend="python", wrt=(0, 1))
    value, (p_bar, q_bar) = f.value_and_grad(P, Q)
    plain = function(P, Q)
    assert value == plain if function in SOLVERS else value == pytest.approx(plain, rel=1e-14)
    gradient = np.array([p_bar, *q_bar])
    assert gradient == pytest.approx(slopes(function), rel=1e-5, abs=1e-7)
    pushed = [f.jvp((P, Q), (step[0], step[1:]))[1] for step in np.eye(3)]
    assert pushed == pytest.approx(gradient, rel=1e-6, abs=1e-9)


WHOLE = [pytest.param(function, marks=pytest.mark.whole) for function in (minimize, odeint, solve_ivp, lines)]


@pytest.mark.parametrize("function", [root, brentq, quad, *WHOLE], ids=named)
def test_second_order(function: Callable) -> None:
    second = tg.grad(tg.grad(function, wrt=0), wrt=0, backend="python")(P, Q)
    first = tg.grad(function, wrt=0, backend="python")
    h = 1e-3
    values = [first(P + k * h, Q) for k in (-2, -1, 1, 2)]
    assert second == pytest.approx((values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * h), rel=1e-5)


def test_a_root_to_fifty_digits() -> None:
    with mpmath.workdps(50):
        slope = mpmath.diff(lambda p: mpmath.findroot(lambda x: x**3 + p * x - 1, 0.6), mpmath.mpf(P))
    got = tg.grad(lambda p: optimize.brentq(lambda x: x**3 + p * x - 1.0, 0.0, 4.0), backend="python")(P)
    assert got == pytest.approx(float(slope), rel=1e-13)


def test_an_integral_to_fifty_digits() -> None:
    with mpmath.workdps(30):
        slope = mpmath.quad(lambda x: mpmath.log(x) * x**P * mpmath.cos(x), [0, 1])
    got = tg.grad(lambda p: integrate.quad(lambda x: x**p * math.cos(x), 0.0, 1.0)[0], backend="python")(P)
    assert got == pytest.approx(float(slope), rel=1e-11)


def test_what_is_no_solution_has_no_derivative() -> None:
    """There is no real root; scipy returns where it has stopped."""

    def nowhere(p):
        return optimize.root(lambda x: np.arctan(x) + 2.0 * p, 1.0).x[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert np.isnan(tg.grad(nowhere, backend="python")(1.0))


def test_recorded_steps_are_those_of_scipy() -> None:
    """Where steps are long, the derivative is that of what is computed, not of the motion itself."""

    def end(p):
        found = integrate.solve_ivp(
            lambda t, y: -p * y, (0.0, 2.0), [1.0], first_step=1.0, max_step=1.0, rtol=9e9, atol=9e9
        )
        return found.y[0, -1]

    h = 1e-4
    slope = (end(P - 2 * h) - 8 * end(P - h) + 8 * end(P + h) - end(P + 2 * h)) / (12 * h)
    got = tg.grad(end, backend="python")(P)
    assert got == pytest.approx(slope, rel=1e-10)
    assert abs(got + 2.0 * math.exp(-2.0 * P)) > 1e-4


def refused_bounds(p):
    return optimize.minimize(lambda x: (x[0] - p) ** 2, [0.0], bounds=[(0.0, 1.0)]).x[0]


def refused_method(p):
    return integrate.solve_ivp(lambda t, y: -p * y, (0.0, 1.0), [1.0], method="LSODA").y[0, -1]


def refused_weight(p):
    return integrate.quad(lambda x: p * x, 0.0, 1.0, weight="cos", wvar=2.0)[0]


def refused_result(p):
    return optimize.root(lambda x: x**2 - p, [1.0])


def refused_kind(p):
    return interpolate.interp1d(X, Y * p, kind="quadratic")(0.5)


def refused_slope(p):
    return interpolate.CubicSpline(X, Y * p).derivative()(0.5)


def refused_object(p):
    return np.poly1d([p, 1.0])(0.5)


def refused_draws(p):
    rng = np.random.default_rng(0)
    return integrate.quad(lambda x: p * x * rng.normal(), 0.0, 1.0)[0]


def refused_counts(p):
    return optimize.minimize(lambda x: (x[0] - p) ** 2, [1.0]).nfev * p


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (refused_bounds, "on the boundary"),
        (refused_method, "method='LSODA' of solve_ivp has no rule"),
        (refused_weight, "options of quad"),
        (refused_result, "returns what a solver of scipy returns"),
        (refused_kind, "kind='quadratic' has no rule"),
        (refused_slope, "derivative has no rule"),
        (refused_object, "an object with coefficients inside"),
        (refused_draws, "draws random numbers"),
        (refused_counts, r"'nfev'.*\n.*\n.*\n.*no counts and messages of the solver"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_what_is_refused(function: Callable, reason: str) -> None:
    with pytest.raises(NotDifferentiable, match=reason) as info:
        tg.differentiable(function, backend="python").jvp((P,), (1.0,))
    assert info.value.span is not None
    assert info.value.span.file == __file__


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (brentq, r"a solver of scipy\.optimize"),
        (lambda p, q: integrate.quad(lambda x: p * x, 0.0, q[0])[0], r"scipy\.integrate\.quad"),
        (lambda p, q: integrate.odeint(lambda y, t: -p * y, [1.0], q)[-1, 0], r"scipy\.integrate\.odeint"),
        (lambda p, q: integrate.solve_ivp(lambda t, y: -p * y, (0, 1), q).y[0, -1], r"scipy\.integrate\.solve_ivp"),
    ],
)
def test_programs_with_solvers_run_as_python(function: Callable, name: str) -> None:
    with pytest.warns(tg.PerformanceWarning, match=f": {name} has no compiled form"):
        assert tg.grad(function)(P, Q) == tg.grad(function, backend="python")(P, Q)


def test_parts_of_rules_have_the_names_that_users_call() -> None:
    """Where numba compiles no call of a function of SciPy, the message names that, and no part of its rule."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tapegen.rules.")]
    parts = {value for module in modules for value in vars(module).values() if hasattr(value, "type_like")}
    assert len(parts) > 5
    unnamed = [part.__name__ for part in parts if not part.part_of and ".mpi." not in part.__module__]
    assert not unnamed
