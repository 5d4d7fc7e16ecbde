"""Black-Scholes: prices of options, and how they follow the price of the share, by ``cyxla.grad``.

Takes the number of options as an argument.
"""

import numpy as np
from helpers.judge import compare, distance, size

import cyxla

RATE, VOLATILITY = 0.02, 0.3


def normal_cdf(x):
    """Part of a normal distribution below x, after Abramowitz and Stegun 26.2.17: seven digits are right."""
    t = 1 / (1 + 0.2316419 * np.abs(x))
    tail = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper = 1 - np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * tail
    return np.where(x < 0, 1 - upper, upper)


@cyxla.jit
def prices(spot, strike, years):
    """Of a call and of a put."""
    spread = VOLATILITY * np.sqrt(years)
    d1 = (np.log(spot / strike) + (RATE + VOLATILITY**2 / 2) * years) / spread
    d2 = d1 - spread
    later = strike * np.exp(-RATE * years)
    call = spot * normal_cdf(d1) - later * normal_cdf(d2)
    return call, call - spot + later


@cyxla.jit
def deltas(spot, strike, years):
    """By how much the price of a call changes with that of the share."""
    return cyxla.grad(lambda s: np.sum(prices(s, strike, years)[0]))(spot)


def main(count):
    rng = np.random.default_rng(0)
    spot, strike, years = rng.uniform(50, 150, count), rng.uniform(60, 140, count), rng.uniform(0.1, 3, count)
    call, put = compare(f"{count} options", prices, prices.__wrapped__, spot, strike, years, tolerance=1e-12)
    assert (call > -1e-4).all()
    assert (put > -1e-4).all()
    spread = VOLATILITY * np.sqrt(years)
    textbook = normal_cdf((np.log(spot / strike) + (RATE + VOLATILITY**2 / 2) * years) / spread)
    apart = distance(deltas(spot, strike, years), textbook)
    assert apart < 1e-4  # as near as `normal_cdf` is
    print(f"  a call on a share at {spot[0]:.2f}, strike {strike[0]:.2f}, {years[0]:.2f} years: {call[0]:.4f}")
    print(f"  deltas by grad, {apart:.1e} from the textbook's")


if __name__ == "__main__":
    main(size(200_000))
