"""Branches, loops and maps for traced functions: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`, `vmap`.

Outside of traced functions they run Python's own branches and loops on NumPy arrays.
"""

from cyxla.numpy.control.cond_and_switch import cond, switch
from cyxla.numpy.control.jacobians import hessian, jacobian
from cyxla.numpy.control.loops import fori_loop, scan, while_loop
from cyxla.numpy.control.mapped_functions import vmap
from cyxla.numpy.control.maps import associative_scan, map

__all__ = [
    "associative_scan", "cond", "fori_loop", "hessian", "jacobian", "map", "scan", "switch", "vmap", "while_loop",
]  # fmt: skip
