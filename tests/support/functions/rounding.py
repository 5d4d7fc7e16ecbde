"""Programs whose results turn on rounding, on elements that nothing has set, or on the order of a copy.

Their plain functions are run with the last bits of sums and functions changed, with other values in `numpy.empty`, and
with assigned arrays copied: NumPy 2.4 assigns vectors of different strides that overlap element by element, so that
``a[1] = a[:, 2]`` may read an element that it has written.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

#: Functions and methods whose last bits depend on an order of additions: the values that they add are changed.
SUMS = frozenset(["sum", "mean", "dot", "cumsum", "std", "var"])
#: Functions whose last bits depend on a library: their results are changed.
FUNCTIONS = frozenset(["sin", "cos", "tanh", "exp", "log", "linspace"])
EMPTY = frozenset(["empty", "empty_like"])
#: Bits after the point that sums of the arguments may have: such results are the same in every order.
EXACT = {"f": 12, "d": 24}
TRIES = 8
BIASES = (2, -2, 1, -1)  # units in the last place by which every second try changes all values
_NUDGE = "written_nudge"


def nudged_text(text: str, seed: int) -> str:
    """Return a module's text whose sums, products and functions pass through a `Nudge`."""
    tree = ast.fix_missing_locations(_Nudged().visit(ast.parse(text)))
    return f"from {__name__} import Nudge\n{_NUDGE} = Nudge({seed})\n{ast.unparse(tree)}"


class Nudge:
    """Values changed by up to two units in the last place, but for those that are exact.

    Parameters
    ----------
    seed : int
        Of the changes.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._bias = BIASES[seed // 2 % len(BIASES)] if seed % 2 else 0

    def __call__(self, value: Any) -> Any:
        kind = getattr(getattr(value, "dtype", None), "char", "d" if isinstance(value, float) else "")
        if kind in ("F", "D"):
            return self(value.real) + 1j * self(value.imag)
        if kind not in EXACT:
            return value
        with np.errstate(all="ignore"):
            values = np.asarray(value)
            whole = values * 2.0 ** EXACT[kind]
            is_exact = (whole == np.rint(whole)) & (np.abs(whole) < 2.0 ** np.finfo(kind).nmant)
            units = self._bias or self._rng.integers(-2, 3, values.shape)
            changed = values + units * np.abs(values) * np.finfo(kind).eps
            changed = np.where(is_exact, values, changed).astype(kind)
        return changed if isinstance(value, np.ndarray) else type(value)(changed)

    def fill(self, array: Any) -> Any:
        """Give the elements of an array values that are others for each seed."""
        array[...] = self._rng.integers(-100, 100, array.shape)
        return array

    def copied(self, target: Any, value: Any) -> Any:
        """Return a copy of an array that is assigned to a part of an array."""
        return value.copy() if isinstance(target, np.ndarray) and isinstance(value, np.ndarray) else value


class _Nudged(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            array = ast.Name(target.value.id, ast.Load())
            node.value = ast.Call(_method("copied"), [array, node.value], [])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Attribute):
            return node
        if function.attr in SUMS:
            is_method = not (isinstance(function.value, ast.Name) and function.value.id in ("np", "math"))
            function.value = _through(function.value) if is_method else function.value
            node.args = [_through(arg) for arg in node.args]
        if function.attr in EMPTY:
            return ast.Call(_method("fill"), [node], [])
        return _through(node) if function.attr in FUNCTIONS else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            node.left, node.right = _through(node.left), _through(node.right)
        return _through(node) if isinstance(node.op, ast.Pow) else node


def _through(node: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(_NUDGE, ast.Load()), [node], [])


def _method(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(_NUDGE, ast.Load()), name, ast.Load())
