"""Volatility models, cash flows and risk figures: arch, numpy_financial, empyrical."""

from __future__ import annotations

import numpy as np

from benchmarks.wild.calls import With, calls, same

RANDOM = np.random.default_rng(10)
RESIDUALS = RANDOM.normal(size=30)
BOUNDS = np.ones((30, 1)) * np.array([1e-4, 1e4])
RETURNS, MARKET = RANDOM.normal(0.001, 0.01, 60), RANDOM.normal(0.001, 0.01, 60)


def recursion(parameters: list[float], *rest: object) -> tuple[object, ...]:
    """Arguments of a recursion of arch: parameters, residuals, room for the variances, and what else it takes."""
    return np.array(parameters), RESIDUALS, np.zeros(30), *rest


CALLS = [
    *calls(
        "arch.univariate.recursions_python",
        arch_recursion_python=recursion([0.1, 0.4, 0.3], 2, 30, 1.0, BOUNDS),
        garch_recursion_python=(
            np.array([0.1, 0.1, 0.1, 0.7]),
            RESIDUALS**2,
            np.sign(RESIDUALS),
            np.zeros(30),
            1,
            1,
            1,
            30,
            1.0,
            BOUNDS,
        ),
        egarch_recursion_python=(
            np.array([0.0, 0.1, 0.1, 0.95]),
            RESIDUALS,
            np.zeros(30),
            1,
            1,
            1,
            30,
            0.1,
            BOUNDS,
            np.zeros(30),
            np.zeros(30),
            np.zeros(30),
        ),
        harch_recursion_python=recursion([0.1, 0.4, 0.3], np.array([1, 5], np.int32), 30, 1.0, BOUNDS),
        midas_recursion_python=(
            np.array([0.1, 0.8, 0.3]),
            np.linspace(0.5, 0.1, 5),
            RESIDUALS,
            np.zeros(30),
            30,
            1.0,
            BOUNDS,
        ),
        figarch_weights_python=(np.array([0.2, 0.4, 0.3]), 1, 1, 20),
        bounds_check_python=(0.5, np.array([1e-4, 1e4])),
    ),
    *calls(
        "numpy_financial",
        fv=(0.05 / 12, 120, -100.0, -100.0),
        ipmt=(0.0824 / 12, 3, 12, 2500.0),
        irr=[-100.0, 39.0, 59.0, 55.0, 20.0],
        mirr=(np.array([-100.0, 39.0, 59.0, 55.0, 20.0]), 0.1, 0.12),
        nper=(0.07 / 12, -150.0, 8000.0),
        npv=(0.08, np.array([-40_000.0, 5_000.0, 8_000.0, 12_000.0, 30_000.0])),
        pmt=(0.075 / 12, 180, 200_000.0),
        ppmt=(0.0824 / 12, 3, 12, 2500.0),
        pv=(0.05 / 12, 120, -100.0, 15692.93),
        rate=(10.0, 0.0, -3500.0, 10000.0),
    ),
    *same(
        "empyrical.stats",
        "annual_return annual_volatility cagr calmar_ratio conditional_value_at_risk cum_returns"
        " cum_returns_final downside_risk max_drawdown omega_ratio sharpe_ratio sortino_ratio"
        " stability_of_timeseries tail_ratio value_at_risk",
        RETURNS,
    ),
    *same(
        "empyrical.stats",
        "alpha alpha_beta beta beta_fragility_heuristic_aligned capture excess_sharpe up_capture",
        RETURNS,
        MARKET,
    ),
    *calls(
        "empyrical.stats",
        simple_returns=np.cumprod(1.0 + RETURNS),
        gpd_es_calculator=(0.05, 0.02, 0.3, 0.2),
        gpd_var_calculator=(0.02, 0.3, 0.2, 0.01, 100, 12),
        gpd_loglikelihood=With([0.3, 0.2], np.abs(RETURNS)),
    ),
]
