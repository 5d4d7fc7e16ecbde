"""Filters of an image: a blur, sharper edges, and where the edges are, of bytes and back to bytes.

Takes the number of points along each side as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

BELL = np.array([1, 4, 6, 4, 1], np.float32) / 16


def along(image, weights, axis):
    """Sums of neighbours along an axis; the border is repeated outwards."""
    reach = len(weights) // 2
    wide = np.pad(image, [(reach, reach) if d == axis else (0, 0) for d in range(image.ndim)], mode="edge")
    count = image.shape[axis]
    parts = [w * np.take(wide, np.arange(k, k + count), axis=axis) for k, w in enumerate(weights)]
    return sum(parts[1:], parts[0])


def as_bytes(image):
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


@cyxla.jit
def sharpen(image):
    """More of what a blur takes away."""
    exact = image.astype(np.float32)
    blurred = along(along(exact, BELL, 0), BELL, 1)
    return as_bytes(exact + 1.5 * (exact - blurred))


@cyxla.jit
def edges(image):
    """How steep the image is, brightest where it is steepest."""
    grey = image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    rise, smooth = np.array([-1, 0, 1], np.float32), np.array([1, 2, 1], np.float32)
    down, across = along(along(grey, rise, 0), smooth, 1), along(along(grey, smooth, 0), rise, 1)
    steep = np.hypot(down, across)
    return as_bytes(steep * (255 / np.maximum(steep.max(), np.float32(1))))


def main(side):
    y, x = np.mgrid[:side, :side] / side
    disc = (np.hypot(x - 0.5, y - 0.5) < 0.3)[..., None] * np.array([200, 80, 40])
    image = (disc + 50 * np.stack([x, y, 1 - x], axis=-1)).astype(np.uint8)
    one = 1 / 255 + 1e-9  # where a value lies between two bytes, either is right
    sharp = compare(f"sharpen {side} x {side}", sharpen, sharpen.__wrapped__, image, tolerance=one)
    steep = compare(f"edges of {side} x {side}", edges, edges.__wrapped__, image, tolerance=one)
    assert np.ptp(sharp) >= np.ptp(image)
    assert steep[side // 2, side // 2] < 40 < steep[side // 2].max()
    print(f"  the edges are at {np.flatnonzero(steep[side // 2] > 120).tolist()} of the middle row")


if __name__ == "__main__":
    main(size(200))
