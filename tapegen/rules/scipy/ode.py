"""Ordinary differential equations (`integrate.odeint`, `integrate.solve_ivp`).

For explicit Runge-Kutta methods (`solve_ivp`) a loop repeats the steps that scipy has accepted, and its derivative is
exact for the computed values (discrete adjoint).  `odeint` chooses orders and steps in ways that cannot be repeated;
its derivative solves the forward sensitivity or adjoint equations to the same tolerance.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate

from tapegen.ir.types import Array
from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.rules.helpers import as_float64, require
from tapegen.rules.implicit import (
    Found,
    as_args,
    behind,
    closed,
    flattened,
    jvp,
    nothing,
    parted,
    primitive,
    vjp,
)
from tapegen.rules.registry import expands, inactive, pullback

_SOLVE_IVP = "scipy.integrate.solve_ivp"


def state_of(y0):
    """An initial state as a vector of floats."""
    state = np.atleast_1d(as_float64(y0))
    require(np.ndim(state) == 1, "the state is no vector.", "Pass a vector, and reshape it in the function.")
    return state


# ---- odeint ----------------------------------------------------------------------------------------------------------


@primitive(lambda function, floats, others, y0, t, options: Array("float64", 2), part_of="scipy.integrate.odeint")
def trajectory(function, floats, others, y0, t, options):
    """The trajectory that `integrate.odeint` computes."""
    rtol, atol, tcrit, h0, hmax, hmin, mxstep = options

    def slope(y, s):
        return function(y, s, *floats, *others)

    return integrate.odeint(slope, y0, t, rtol=rtol, atol=atol, tcrit=tcrit, h0=h0, hmax=hmax, hmin=hmin, mxstep=mxstep)


@pullback(trajectory, wrt=("floats", "y0", "t"))
def trajectory_pullback(function, floats, others, y0, t, options, *, out, out_bar):
    """Backwards from time to time: the state starts anew at each, its weights and the sums of gradients go on."""
    n = np.size(y0)
    rtol, atol, _, _, _, _, mxstep = options

    def backwards(state, s):
        value, pull = vjp(function, state[:n], s, *floats, *others, wrt=(0, *behind(2, len(floats))))
        bars = pull(state[n : 2 * n])
        return np.concatenate((value, -bars[0], -flattened(bars[1:])))

    sums = flattened(floats)
    state = np.zeros(2 * n + np.size(sums))
    t_bar = np.zeros_like(t)
    last = np.size(t) - 1
    state[n : 2 * n] = out_bar[last]
    for back in range(last):
        k = last - back
        state[:n] = out[k]
        t_bar[k] += np.sum(out_bar[k] * function(out[k], t[k], *floats, *others))
        span = np.stack((t[k], t[k - 1]))
        state[:] = integrate.odeint(backwards, state, span, rtol=rtol, atol=atol, mxstep=mxstep)[1]
        if k == 1:
            t_bar[0] -= np.sum(state[n : 2 * n] * function(out[0], t[0], *floats, *others))
        state[n : 2 * n] += out_bar[k - 1]
    return parted(state[2 * n :], floats), state[n : 2 * n], t_bar


@trajectory_pullback.pushforward
def trajectory_pushforward(function, floats, others, y0, t, options, *, out, floats_dot, y0_dot, t_dot):
    """The state and its tangent, together."""
    n = np.size(y0)
    rtol, atol, tcrit, h0, hmax, hmin, mxstep = options

    def both(state, s):
        value, moved = jvp(
            function, (state[:n], s, *floats, *others), (state[n:], None, *floats_dot, *nothing(len(others)))
        )
        return np.concatenate((value, moved))

    start = np.concatenate((y0, y0_dot - t_dot[0] * function(y0, t[0], *floats, *others)))
    found = integrate.odeint(
        both, start, t, rtol=rtol, atol=atol, tcrit=tcrit, h0=h0, hmax=hmax, hmin=hmin, mxstep=mxstep
    )
    dot = np.copy(found[:, n:])
    for k in range(np.size(t)):
        dot[k] += t_dot[k] * function(out[k], t[k], *floats, *others)
    return dot


@expands(integrate.odeint, written=True)
def odeint(
    func,
    y0,
    t,
    args=(),
    Dfun=None,
    col_deriv=0,
    full_output=0,
    ml=None,
    mu=None,
    rtol=None,
    atol=None,
    tcrit=None,
    h0=0.0,
    hmax=0.0,
    hmin=0.0,
    ixpr=0,
    mxstep=0,
    mxhnil=0,
    mxordn=12,
    mxords=5,
    printmessg=0,
    tfirst=False,
):
    require(
        Dfun is None and not full_output and ml is None and mu is None and mxordn == 12 and mxords == 5,
        "these options of odeint have no rule.",
        "Leave Dfun=, full_output=, ml=, mu=, mxordn= and mxords= out.",
    )
    args = as_args(args)
    state = state_of(y0)
    times = as_float64(t)

    def slope(y, s):
        value = func(s, y, *args) if tfirst else func(y, s, *args)
        return np.atleast_1d(as_float64(value))

    function, floats, others, _ = closed(slope, state, 0.5)
    return trajectory(function, floats, others, state, times, (rtol, atol, tcrit, h0, hmax, hmin, mxstep))


# ---- solve_ivp -------------------------------------------------------------------------------------------------------

_METHODS = {"RK23": integrate.RK23, "RK45": integrate.RK45, "DOP853": integrate.DOP853}


@primitive(lambda function, floats, others, start, end, y0, method, options: Array("float64", 1), part_of=_SOLVE_IVP)
def accepted_times(function, floats, others, start, end, y0, method, options):
    """The times at which the accepted steps of `integrate.solve_ivp` begin and end."""
    rtol, atol, first_step, max_step = options

    def slope(t, y):
        return function(t, y, *floats, *others)

    return integrate.solve_ivp(
        slope, (start, end), y0, method=method, rtol=rtol, atol=atol, first_step=first_step, max_step=max_step
    ).t


@primitive(lambda method: Array("float64", 2), part_of=_SOLVE_IVP)
def stage_weights(method):
    """The Butcher tableau: row s has the weights of slopes for stage s; the last row gives the next state."""
    weights = _METHODS[method].A
    stages = _METHODS[method].n_stages
    rows = np.zeros((stages + 1, stages))
    rows[:stages, : weights.shape[1]] = weights
    rows[stages] = _METHODS[method].B
    return rows


@primitive(lambda method: Array("float64", 1), part_of=_SOLVE_IVP)
def stage_times(method):
    """The time of each stage within a step, and the end of the step."""
    return np.append(_METHODS[method].C, 1.0)


@primitive(lambda method: Array("float64", 2), part_of=_SOLVE_IVP)
def between(method):
    """The dense output polynomials of a step, as weights of slopes."""
    return _METHODS[method].P


inactive(accepted_times, stage_weights, stage_times, between)


@expands(integrate.solve_ivp, written=True)
def solve_ivp(
    fun,
    t_span,
    y0,
    method="RK45",
    t_eval=None,
    dense_output=False,
    events=None,
    vectorized=False,
    args=None,
    first_step=None,
    max_step=np.inf,
    rtol=1e-3,
    atol=1e-6,
):
    require(
        not dense_output and events is None and not vectorized,
        "these options of solve_ivp have no rule.",
        "Leave dense_output=, events= and vectorized= out; t_eval= gives the state at times of your choice.",
    )
    require(
        method in ("RK23", "RK45") or (method == "DOP853" and t_eval is None),
        f"method={method!r} of solve_ivp has no rule{' with t_eval=' if method == 'DOP853' else ''}.",
        "Use method='RK45' or scipy.integrate.odeint.",
    )
    args = as_args(args)
    state = state_of(y0)
    start, end = float(t_span[0]), float(t_span[1])

    def slope(t, y):
        return np.atleast_1d(as_float64(fun(t, y, *args)))

    function, floats, others, _ = closed(slope, 0.5, state)
    options = stop_gradient((rtol, atol, first_step, max_step))
    times = np.copy(accepted_times(function, floats, others, start, end, state, method, options))
    last = np.size(times) - 1
    success = times[last] == end
    times[0] = start  # the ends depend on the span, the times between them are constants
    if success:
        times[last] = end
    points = None if t_eval is None else as_float64(t_eval)
    if points is None:
        states = runge_kutta(slope, times, state, method)
        return Found(t=times, y=states, success=success)
    return Found(t=points, y=dense(slope, times, state, method, points), success=success)


def runge_kutta(slope, times, state, method):
    """The states at the ends of steps, in columns."""
    weights, moments = stage_weights(method), stage_times(method)
    stages = np.shape(weights)[1]
    states = np.zeros((np.size(state), np.size(times)))
    states[:, 0] = state
    slopes = np.zeros((stages, np.size(state)))
    for k in range(np.size(times) - 1):
        h = times[k + 1] - times[k]
        y = np.copy(states[:, k])
        for s in range(stages):
            slopes[s] = slope(times[k] + moments[s] * h, y + np.dot(slopes[:s].T, weights[s, :s]) * h)
        states[:, k + 1] = y + h * np.dot(slopes.T, weights[stages])
    return states


def dense(slope, times, state, method, points):
    """The states at other times, in columns, on the polynomials between the ends of steps."""
    weights, moments, polynomials = stage_weights(method), stage_times(method), between(method)
    stages, order = np.shape(weights)[1], np.shape(polynomials)[1]
    count = np.size(times) - 1
    states = np.zeros((count + 1, np.size(state)))
    states[0] = state
    slopes = np.zeros((stages + 1, np.size(state)))
    curves = np.zeros((count, np.size(state), order))
    for k in range(count):
        h = times[k + 1] - times[k]
        y = np.copy(states[k])
        for s in range(stages + 1):
            slopes[s] = slope(times[k] + moments[s] * h, y + np.dot(slopes[:s].T, weights[s, :s]) * h)
        states[k + 1] = y + h * np.dot(slopes[:stages].T, weights[stages])
        curves[k] = np.dot(slopes.T, polynomials)
    found = np.zeros((np.size(state), np.size(points)))
    forward = times[count] > times[0]
    for j in range(np.size(points)):
        if forward:
            k = np.searchsorted(times, points[j]) - 1
        else:
            k = np.searchsorted(-times, -points[j]) - 1
        k = max(k, 0)
        h = times[k + 1] - times[k]
        x = (points[j] - times[k]) / h
        found[:, j] = h * np.dot(curves[k], np.cumprod(x * np.ones(order))) + states[k]
    return found
