"""Calibrate Heston's model of stochastic volatility to option prices, with an exact Jacobian.

The model prices a call by an integral over its characteristic function, in complex arithmetic; five parameters
describe the whole surface of implied volatilities. Levenberg and Marquardt's method fits them to 45 quotes with
noise, with the Jacobian of the pricing function from tapegen; its inverse normal matrix gives the standard errors.

Run it: `python examples/heston.py`. It saves `examples/output/heston.png`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq, least_squares
from scipy.stats import norm

import tapegen as tg

NAMES = ("variance at the start", "long-run variance", "speed of return", "volatility of variance", "correlation")
TRUE = np.array([0.04, 0.06, 1.8, 0.55, -0.7])
START = np.array([0.09, 0.09, 1.0, 0.3, -0.3])
BOUNDS = ([0.001, 0.001, 0.05, 0.05, -0.99], [1.0, 1.0, 10.0, 3.0, 0.99])
MATURITIES = np.array([0.15, 0.4, 0.8, 1.5, 2.5])  # years
STRIKES = np.array([0.75, 0.82, 0.9, 0.95, 1.0, 1.05, 1.12, 1.2, 1.3])  # over the spot price
NOISE = 0.001  # standard deviation of an implied volatility
NODES = 64  # of the quadrature
OUTPUT = pathlib.Path(__file__).parent / "output" / "heston.png"


def transform(p, u, maturity):
    """E[exp(i w X)] of the log-return X at w = u - i/2: where Lewis' formula for a call takes it."""
    v0, theta, kappa, sigma, rho = p
    s = 1j * u + 0.5
    b = kappa - rho * sigma * s
    d = np.sqrt(b * b + sigma**2 * (s - s * s))
    decay = np.exp(-d * maturity)
    g = (b - d) / (b + d)
    level = kappa * theta / sigma**2 * ((b - d) * maturity - 2.0 * np.log((1.0 - g * decay) / (1.0 - g)))
    slope = (b - d) / sigma**2 * (1.0 - decay) / (1.0 - g * decay)
    return np.exp(level + slope * v0)


def prices(p, maturities, strikes, nodes, weights):
    """Calls as a share of the spot price: a row for each maturity."""
    out = np.empty((maturities.size, strikes.size))
    for i in range(maturities.size):
        phi = transform(p, nodes, maturities[i]) * weights / (nodes**2 + 0.25)
        for j in range(strikes.size):
            k = -np.log(strikes[j])
            out[i, j] = 1.0 - np.sqrt(strikes[j]) / np.pi * np.sum((np.exp(1j * nodes * k) * phi).real)
    return out


def black_scholes(volatility, maturity, strike):
    """Price of a call and its derivative with respect to volatility, as shares of the spot price."""
    deviation = volatility * np.sqrt(maturity)
    d1 = -np.log(strike) / deviation + 0.5 * deviation
    return norm.cdf(d1) - strike * norm.cdf(d1 - deviation), norm.pdf(d1) * np.sqrt(maturity)


def price_error(volatility, maturity, strike, price):
    """How much more a call costs than it should."""
    return black_scholes(volatility, maturity, strike)[0] - price


def implied(price: np.ndarray) -> np.ndarray:
    """The volatility at which Black and Scholes' formula gives each price."""
    out = np.empty_like(price)
    for i, j in np.ndindex(price.shape):
        out[i, j] = brentq(price_error, 1e-3, 3.0, args=(MATURITIES[i], STRIKES[j], price[i, j]))
    return out


def fit(market: np.ndarray, grid: tuple[np.ndarray, np.ndarray]):
    """Least squares of price errors, each divided by the option's vega: errors of implied volatilities."""
    target, vega = black_scholes(market, MATURITIES[:, None], STRIKES)
    jacobian = tg.jacobian(prices)
    scale = vega * NOISE

    def residual(p):
        return ((prices(p, MATURITIES, STRIKES, *grid) - target) / scale).ravel()

    def slope(p):
        return (jacobian(p, MATURITIES, STRIKES, *grid) / scale[:, :, None]).reshape(-1, p.size)

    return least_squares(residual, START, jac=slope, bounds=BOUNDS, x_scale=np.abs(START))


def plot(market: np.ndarray, model: np.ndarray, before: np.ndarray) -> None:
    """Quotes and the fitted smile of each maturity."""
    figure, axes = plt.subplots(1, len(MATURITIES), figsize=(12, 3.2), sharey=True, layout="constrained")
    for i, axis in enumerate(axes):
        axis.plot(STRIKES, 100 * market[i], "o", ms=4, color="0.4", label="quotes")
        axis.plot(STRIKES, 100 * before[i], ":", color="C0", label="start of the fit")
        axis.plot(STRIKES, 100 * model[i], color="C3", label="fitted")
        axis.set_title(f"{MATURITIES[i]:g} years")
        axis.set_xlabel("strike / spot")
    axes[0].set_ylabel("implied volatility, %")
    axes[-1].legend(frameon=False, fontsize=8)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    x, w = np.polynomial.legendre.leggauss(NODES)
    grid = 40.0 * (x + 1.0), 40.0 * w  # the integrand has decayed at 80
    market = implied(prices(TRUE, MATURITIES, STRIKES, *grid))
    market += NOISE * np.random.default_rng(2).standard_normal(market.shape)
    found = fit(market, grid)
    errors = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))

    print(f"{market.size} quotes, {found.nfev} evaluations of the prices, {found.njev} Jacobians")
    for name, true, value, error in zip(NAMES, TRUE, found.x, errors):
        print(f"{name:24}{value:8.4f} +- {error:.4f}  (true {true:g})")
    fitted = implied(prices(found.x, MATURITIES, STRIKES, *grid))
    rms = float(np.sqrt(np.mean((fitted - market) ** 2)))
    print(f"error of the volatilities {100 * rms:.3f} % (noise {100 * NOISE:.3f} %)")
    plot(market, fitted, implied(prices(START, MATURITIES, STRIKES, *grid)))
    print(f"saved {OUTPUT}")
    return {"rms": rms, "worst": float(np.max(np.abs(found.x - TRUE) / errors))}


if __name__ == "__main__":
    main()
