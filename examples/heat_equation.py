"""The heat equation: a plate with a warm edge, written in place as one would with NumPy.

Takes the number of points along each side as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

RATE = 0.2


@cyxla.jit
def step(plate):
    """The plate a moment later; its edges keep their warmth."""
    later = plate.copy()
    inner = plate[1:-1, 1:-1]
    later[1:-1, 1:-1] += RATE * (plate[2:, 1:-1] + plate[:-2, 1:-1] + plate[1:-1, 2:] + plate[1:-1, :-2] - 4 * inner)
    return later


@cyxla.jit
def wait(plate, steps):
    """The plate after many steps."""
    return cyxla.fori_loop(0, steps, lambda _, now: step(now), plate)


def wait_plainly(plate, steps):
    for _ in range(steps):
        plate = step.__wrapped__(plate)
    return plate


def main(side):
    plate = np.zeros((side, side), np.float32)
    plate[0] = 100
    warm = compare(f"{side} x {side} points, 100 steps", wait, wait_plainly, plate, 100, tolerance=1e-5, repeat=1)
    down = warm[:, side // 2]
    assert (np.diff(down) <= 0).all()
    assert 0 < down[10] < 100
    print("  from the warm edge down:", ", ".join(f"{t:.1f}" for t in down[:20:2]))


if __name__ == "__main__":
    main(size(300))
