"""A picture of a run: how many times faster than NumPy each kernel is, ours and Numba."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from report import Row

HEIGHT = 0.4  # of a bar
COLOURS = {"ours": "#1f77b4", "Numba": "#c9c9c9"}


def draw(rows: Sequence[Row], path: Path, title: str) -> None:
    """Write a PNG with two bars for each kernel, the fastest first; what did not run says so instead."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    rows = sorted(rows, key=lambda row: (row.over_numpy or 0.0, row.kernel))
    figure, axes = pyplot.subplots(figsize=(8, 0.24 * len(rows) + 1.2))
    for y, row in enumerate(rows):
        numba = row.numpy / row.numba if row.numpy and row.numba else None
        for offset, ratio, name in ((0.5, row.over_numpy, "ours"), (-0.5, numba, "Numba")):
            if ratio:
                axes.barh(y + offset * HEIGHT, ratio - 1, HEIGHT, left=1, color=COLOURS[name])
        if not row.over_numpy:
            axes.text(1.03, y + 0.5 * HEIGHT, row.status, va="center", fontsize=7, color=COLOURS["ours"])
    axes.set_yticks(range(len(rows)), [row.kernel for row in rows], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("times faster than NumPy")
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(axis="x", linewidth=0.3)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    axes.legend(handles, ["@cyxla.jit, unmodified", "NPBench's Numba versions, the fastest"], loc="lower right")
    axes.set_title(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
