"""Conway's Game of Life on a torus: a glider comes back to where it was, and a soup of random cells.

Takes the number of cells along each side as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

GENERATIONS = 50
GLIDER = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], bool)


@cyxla.jit
def step(cells):
    """The next generation."""
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(np.roll(cells, shift, axis=(0, 1)).astype(np.int8) for shift in shifts)
    return (neighbours == 3) | (cells & (neighbours == 2))


@cyxla.jit
def live(cells):
    """Fifty generations later, and how many cells were alive in each."""
    return cyxla.scan(lambda now, _: (step(now), now.sum()), cells, np.arange(GENERATIONS))


def live_plainly(cells):
    alive = []
    for _ in range(GENERATIONS):
        alive.append(cells.sum())
        cells = step.__wrapped__(cells)
    return cells, np.array(alive)


def main(side):
    cells = np.zeros((16, 16), bool)
    cells[:3, :3] = GLIDER
    turned = cells
    for _ in range(4):
        turned = step(turned)
    np.testing.assert_array_equal(turned, np.roll(cells, (1, 1), axis=(0, 1)))
    for _ in range(60):
        turned = step(turned)
    np.testing.assert_array_equal(turned, cells)

    soup = np.random.default_rng(3).random((side, side)) < 0.3
    _, alive = compare(f"{side} x {side} cells", live, live_plainly, soup, tolerance=0, repeat=1)
    print(f"  alive: {alive[::10].tolist()}")
    for row in turned[:6, :12]:
        print("  " + "".join(" #"[int(c)] for c in row))


if __name__ == "__main__":
    main(size(256))
