"""Sensitivities of an Asian option by Monte Carlo: all months of the volatility and rate curves in one backward sweep.

The option pays the average of a share price over a year, above a strike. The share follows a geometric Brownian
motion whose volatility and interest rate are given month by month. A bank wants the price, and its derivatives with
respect to all 25 market data: the pathwise method differentiates the simulation with the random numbers held.

Run it: `python examples/greeks.py`. It saves `examples/output/greeks.png`.
"""

from __future__ import annotations

import math
import pathlib
import time
import timeit

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tapegen import differentiable

MONTHS = 12
STEPS_PER_MONTH = 4
PATHS = 20_000
STRIKE = 100.0
OUTPUT = pathlib.Path(__file__).parent / "output" / "greeks.png"


@differentiable(wrt=("spot", "volatility", "rate"))
def price(spot, volatility, rate, strike, noise):
    """Mean discounted payoff over all paths; `noise` has a row of standard normal numbers for each step."""
    steps, paths = noise.shape
    per_month = steps // volatility.size
    dt = 1.0 / steps
    log_price = np.full(paths, math.log(spot))
    average = np.zeros(paths)
    total_rate = 0.0
    for i in range(steps):
        month = i // per_month
        drift = (rate[month] - 0.5 * volatility[month] ** 2) * dt
        log_price += drift + volatility[month] * math.sqrt(dt) * noise[i]
        average += np.exp(log_price) / steps
        total_rate += rate[month] * dt
    return math.exp(-total_rate) * np.mean(np.maximum(average - strike, 0.0))


def market() -> tuple[float, np.ndarray, np.ndarray]:
    """Spot price, and curves of volatility and interest rate by month."""
    month = np.arange(MONTHS)
    return 100.0, 0.22 + 0.08 * np.exp(-month / 4.0), 0.02 + 0.001 * month


def largest_difference(noise: np.ndarray, gradient: tuple) -> float:
    """Largest relative difference from central differences with the same random numbers, over three of the inputs."""
    spot, volatility, rate = market()
    h, month = 1e-6, np.eye(MONTHS)[MONTHS // 3]
    pairs = (
        (gradient[0], lambda t: price.python(spot + t, volatility, rate, STRIKE, noise)),
        (gradient[1] @ month, lambda t: price.python(spot, volatility + t * month, rate, STRIKE, noise)),
        (gradient[2] @ month, lambda t: price.python(spot, volatility, rate + t * month, STRIKE, noise)),
    )
    return max(abs((f(h) - f(-h)) / (2.0 * h) / have - 1.0) for have, f in pairs)


def plot(spots: np.ndarray, prices: np.ndarray, deltas: np.ndarray, vega: np.ndarray, rho: np.ndarray) -> None:
    """Price and delta over the spot price, and the sensitivities by month."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    axes[0].plot(spots, prices, color="C0", label="price")
    axes[0].set_xlabel("spot price")
    axes[0].set_ylabel("price")
    twin = axes[0].twinx()
    twin.plot(spots, deltas, color="C3", label="delta")
    twin.set_ylabel("delta")
    axes[0].legend(handles=[axes[0].lines[0], twin.lines[0]], frameon=False)
    month = np.arange(1, MONTHS + 1)
    axes[1].bar(month - 0.2, 0.01 * vega, width=0.4, label="volatility + 1 %")
    axes[1].bar(month + 0.2, 0.01 * rho, width=0.4, label="rate + 1 %")
    axes[1].set_xlabel("month")
    axes[1].set_ylabel("change of the price")
    axes[1].legend(frameon=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> dict[str, float]:
    noise = np.random.default_rng(5).standard_normal((MONTHS * STEPS_PER_MONTH, PATHS))
    spot, volatility, rate = market()
    value, gradient = price.value_and_grad(spot, volatility, rate, STRIKE, noise)
    delta, vega, rho = gradient
    difference = largest_difference(noise, gradient)

    data = (spot, volatility, rate, STRIKE, noise)
    plain, both = (
        1e3 * min(timeit.repeat(lambda f=f: f(*data), timer=time.process_time, number=1))
        for f in (price.python, price.value_and_grad)
    )

    print(f"price             {value:.3f} from {PATHS} paths of {noise.shape[0]} steps")
    print(f"delta             {delta:.4f}")
    print(f"vega              {0.01 * vega.sum():.4f} for 1 % more volatility in all months")
    print(f"rho               {0.01 * rho.sum():.4f} for 1 % more interest")
    print(f"differences       agree to {difference:.1e}")
    print(
        f"time              {plain:.0f} ms for the price in NumPy; with its {1 + 2 * MONTHS} derivatives {both:.0f} ms"
    )
    spots = np.linspace(70.0, 140.0, 15)
    curves = [price.value_and_grad(s, volatility, rate, STRIKE, noise) for s in spots]
    plot(spots, np.array([c[0] for c in curves]), np.array([c[1][0] for c in curves]), vega, rho)
    print(f"saved             {OUTPUT}")
    return {"price": value, "delta": delta, "difference": difference}


if __name__ == "__main__":
    main()
