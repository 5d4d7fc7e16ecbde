"""Branches, loops and maps for traced functions: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`, `vmap`.

Outside of traced functions they run Python's own branches and loops on NumPy arrays. They are imported on first use:
loops and branches that are written in Python need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyxla.lazy_attributes import lazy_attributes

if TYPE_CHECKING:
    from cyxla.numpy.control.cond_and_switch import cond, switch
    from cyxla.numpy.control.jacobians import hessian, jacobian
    from cyxla.numpy.control.loops import fori_loop, scan, while_loop
    from cyxla.numpy.control.mapped_functions import vmap
    from cyxla.numpy.control.maps import associative_scan, map

__all__ = [
    "associative_scan", "cond", "fori_loop", "hessian", "jacobian", "map", "scan", "switch", "vmap", "while_loop",
]  # fmt: skip

__getattr__ = lazy_attributes(__name__, {
    "associative_scan": ".maps", "cond": ".cond_and_switch", "fori_loop": ".loops", "hessian": ".jacobians",
    "jacobian": ".jacobians", "map": ".maps", "scan": ".loops", "switch": ".cond_and_switch",
    "vmap": ".mapped_functions", "while_loop": ".loops",
})  # fmt: skip
