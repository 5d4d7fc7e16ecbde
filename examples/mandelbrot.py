"""The Mandelbrot set: how many steps each point of a plane takes to leave, and a picture in letters.

Takes the number of points along each side as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

STEPS = 60
SHADES = " .:-=+*#%@"


@cyxla.jit
def step(z, c, counts):
    """One step of all points; those outside stay where they are."""
    inside = z.real * z.real + z.imag * z.imag <= 4
    return np.where(inside, z * z + c, z), counts + inside


@cyxla.jit
def escapes(c):
    """Steps that each point stays inside."""
    start = np.zeros_like(c), np.zeros(c.shape, np.int32)
    return cyxla.fori_loop(0, STEPS, lambda _, now: step(now[0], c, now[1]), start)[1]


def escapes_plainly(c):
    z, counts = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(STEPS):
        z, counts = step.__wrapped__(z, c, counts)
    return counts


def draw(counts, columns=72, rows=24):
    """A picture of letters."""
    picked = counts[np.linspace(0, len(counts) - 1, rows).astype(int)]
    picked = picked[:, np.linspace(0, counts.shape[1] - 1, columns).astype(int)]
    shades = np.array(list(SHADES))[picked * (len(SHADES) - 1) // STEPS]
    print("\n".join("".join(row) for row in shades))


def main(side):
    real, imag = np.linspace(-2, 0.6, side), np.linspace(-1.2, 1.2, side)
    # points at the very border may leave one step sooner or later
    counts = compare(
        f"{side} x {side} points", escapes, escapes_plainly, real + 1j * imag[:, None], tolerance=1.0, repeat=1
    )
    assert np.mean(counts != escapes_plainly(real + 1j * imag[:, None])) < 1e-3
    assert 0.1 < np.mean(counts == STEPS) < 0.4
    draw(counts)


if __name__ == "__main__":
    main(size(250))
