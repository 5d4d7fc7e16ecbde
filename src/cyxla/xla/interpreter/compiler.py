"""The platform that evaluates: right before fast."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cyxla._native import arguments
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator import Options, Value, check_custom_calls, evaluate
from cyxla.xla.evaluator.values import TOKEN_VALUE
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions, Compiler, Executable


class InterpreterCompiler(Compiler):
    """Compiles nothing: the executable evaluates the module as it came."""

    platform: ClassVar[str] = "interpreter"

    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """No rewriting: the oracle runs what was written."""
        return module

    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """Wrap the module."""
        check_custom_calls(module, options.custom_calls)
        return InterpreterExecutable(module, options)


class InterpreterExecutable(Executable):
    """Evaluates a module on NumPy arrays."""

    platform = "interpreter"

    def __init__(self, module: HloModule, options: CompileOptions) -> None:
        self._module, self._options = module, options
        self.inputs = tuple(p.shape.logical for p in module.parameters)
        self.outputs = module.entry.root.shape.logical
        self._places = {}
        number = 0
        for k, shape in enumerate(self.inputs):
            self._places[k] = _numbered(shape, number)
            number += len(shape.leaves())

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Evaluate; see `Executable`."""
        trees = tuple(self._places[k] for k in range(len(self.inputs)))
        flat = arguments.flatten(args, trees)
        leaves = [leaf for shape in self.inputs for leaf in shape.leaves()]
        values = [_conform(v, leaf, (trees, k)) for k, (v, leaf) in enumerate(zip(flat, leaves, strict=True))]
        options = Options(
            custom_calls=self._options.custom_calls, seed=self._options.seed, max_trips=self._options.max_trips
        )
        result = evaluate(self._module, [arguments.build(tree, values) for tree in trees], options=options)
        return _deliver(result, out)

    def hlo(self, stage: str = "optimized") -> str:
        """HLO text; both stages are the program as given."""
        return self._module.to_text()

    def explain(self) -> str:
        """Say how the program runs."""
        return f"{self._module!r} evaluated instruction by instruction on NumPy"


def _numbered(shape: Shape, start: int) -> Any:
    """The tree of leaf numbers of a shape."""
    if not shape.is_tuple:
        return start
    parts = []
    for element in shape.elements:
        parts.append(_numbered(element, start))
        start += len(element.leaves())
    return tuple(parts)


def _conform(value: Any, shape: Shape, where: arguments.Where) -> Value:
    if shape.dtype is ElementType.TOKEN:
        return TOKEN_VALUE
    assert shape.dtype.numpy_dtype is not None
    array: np.ndarray[Any, Any] = arguments.convert(value, shape.dtype.numpy_dtype, shape.dims, where)
    return array


def _deliver(result: Any, out: Any) -> Any:
    """Results as new arrays, or copied into `out`."""
    if isinstance(result, tuple):
        outs = out if out is not None else (None,) * len(result)
        return tuple(_deliver(r, o) for r, o in zip(result, outs, strict=True))
    if not isinstance(result, np.ndarray):
        return result
    if out is None:
        return np.array(result, order="C")
    np.copyto(out, result)
    return out
