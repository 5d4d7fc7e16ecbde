"""N-body: stars that attract each other, moved by leaps; their energy stays what it was.

Takes the number of stars as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

STEP, SOFT = 0.002, 0.1


def accelerations(places, masses):
    """Of each star by all others."""
    apart = places[None] - places[:, None]
    squared = np.sum(apart**2, axis=-1) + SOFT**2
    pull = masses / (squared * np.sqrt(squared))
    return np.sum(pull[..., None] * apart, axis=1)


@cyxla.jit
def leap(places, speeds, masses):
    """The stars one step later."""
    half = speeds + STEP / 2 * accelerations(places, masses)
    there = places + STEP * half
    return there, half + STEP / 2 * accelerations(there, masses)


@cyxla.jit
def run(places, speeds, masses, steps):
    """The stars many steps later."""
    return cyxla.fori_loop(0, steps, lambda _, now: leap(*now, masses), (places, speeds))


def run_plainly(places, speeds, masses, steps):
    for _ in range(steps):
        places, speeds = leap.__wrapped__(places, speeds, masses)
    return places, speeds


@cyxla.jit
def energy(places, speeds, masses):
    """Of motion and of position."""
    apart = places[None] - places[:, None]
    pull = masses * masses[:, None] / np.sqrt(np.sum(apart**2, axis=-1) + SOFT**2)
    inner = np.sum(np.triu(pull, 1))
    return np.sum(masses * np.sum(speeds**2, axis=-1)) / 2 - inner


def main(count):
    rng = np.random.default_rng(0)
    places, speeds = rng.normal(size=(count, 3)), 0.3 * rng.normal(size=(count, 3))
    masses = rng.uniform(0.5, 1.5, count) / count
    before = compare("energy", energy, energy.__wrapped__, places, speeds, masses, tolerance=1e-10)
    moved = compare(f"{count} stars, 20 steps", run, run_plainly, places, speeds, masses, 20, tolerance=1e-9)
    after = energy(*moved, masses)
    assert abs(after / before - 1) < 1e-3
    print(f"  energy {before:.6f} before, {after:.6f} after")


if __name__ == "__main__":
    main(size(200))
