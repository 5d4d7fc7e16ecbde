"""An executable that evaluates its module on NumPy: the reference, which runs on any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla._native import arguments
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator import Options, Value, check_custom_calls, evaluate
from cyxla.xla.evaluator.values import TOKEN_VALUE, fits
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.devices import check_devices
from cyxla.xla.service.donation import resolve_donation
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions
from cyxla.xla.service.pickling import reduce_executable

if TYPE_CHECKING:
    from cyxla.xla.feeds import Feeds
    from cyxla.xla.service.explanation import Explanation


class EvaluatedExecutable(Executable):
    """Executable that evaluates a module on NumPy arrays.

    Raises
    ------
    UnimplementedError
        A custom call has no evaluator, or the module needs several devices.
    """

    def __init__(self, module: HloModule, options: CompileOptions) -> None:
        check_custom_calls(module, options.custom_calls)
        check_devices(module)
        options = resolve_donation(options, module)  # only a check: the evaluator does not reuse buffers
        self._module, self._options = module, options
        self.inputs = tuple(p.shape.logical for p in module.parameters)
        self.outputs = module.entry.root.shape.logical
        self._leaf_numbers = {}
        number = 0
        for k, shape in enumerate(self.inputs):
            self._leaf_numbers[k] = _leaf_numbers(shape, number)
            number += len(shape.leaves())

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Evaluate; see `Executable`."""
        trees = tuple(self._leaf_numbers[k] for k in range(len(self.inputs)))
        flat = arguments.flatten(args, trees)
        leaves = [leaf for shape in self.inputs for leaf in shape.leaves()]
        values = [_conform(v, leaf, (trees, k)) for k, (v, leaf) in enumerate(zip(flat, leaves, strict=True))]
        destinations = arguments.match_out(
            out, _leaf_numbers(self.outputs, 0), tuple(map(_spec, self.outputs.leaves()))
        )
        options = Options(
            custom_calls=self._options.custom_calls, seed=self._options.seed, max_trips=self._options.max_trips,
            feeds=self._options.feeds,
        )  # fmt: skip
        result = evaluate(self._module, [arguments.build(tree, values) for tree in trees], options=options)
        _check_sizes(result, self.outputs)
        return result if out is None else arguments.write_out(result, destinations)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduce_executable(self._module, self.platform, self._options, {})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments in the program."""
        return tuple(p.name for p in self._module.parameters)

    @property
    def feeds(self) -> Feeds:
        """The other end of the program's transfers; see `Executable.feeds`."""
        return self._options.feeds

    def _given_module(self) -> HloModule:
        return self._module

    def hlo(self, stage: str = "optimized") -> str:
        """Return the HLO text; both stages are the program as given."""
        if stage not in ("input", "optimized"):
            raise InvalidArgumentError(f"unknown stage {stage!r}", hint="input or optimized")
        return self._module.to_text()

    def explain(self) -> str:
        """Return a description of the execution."""
        return f"{self._module!r} evaluated instruction by instruction on NumPy"

    def explanation(self) -> Explanation:
        """Return one kernel for each opcode and shape of the entry computation."""
        from cyxla.xla.service.explanation import Explanation, instruction_reports

        kernels = instruction_reports((i.opcode, i) for i in self._module.entry.instructions if i.operands)
        return Explanation(self.platform, self.tier, self.explain(), kernels)


def _leaf_numbers(shape: Shape, start: int) -> Any:
    """Return the tree of leaf numbers of a shape."""
    if not shape.is_tuple:
        return start
    parts = []
    for element in shape.elements:
        parts.append(_leaf_numbers(element, start))
        start += len(element.leaves())
    return tuple(parts)


def _spec(shape: Shape) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...]]:
    """Return the dtype, sizes and bounded dimensions of an array for `out=`; no array matches a token."""
    if shape.dtype.numpy_dtype is None:
        return np.dtype("V"), (), ()
    return shape.dtype.numpy_dtype, shape.dims, tuple([d for d, dynamic in enumerate(shape.dynamic) if dynamic])


def _conform(value: Any, shape: Shape, where: arguments.Where) -> Value:
    if shape.dtype is ElementType.TOKEN:
        return TOKEN_VALUE
    if shape.dtype.numpy_dtype is None:
        raise UnimplementedError(f"{arguments.name(where)} is {shape}, which has no NumPy counterpart")
    dims = np.shape(value) if shape.is_dynamic else shape.dims  # of a dynamic shape, anything within the bounds
    if shape.is_dynamic and not fits(dims, shape):
        raise ShapeError(f"{arguments.name(where)}: got {arguments.describe(value)}, want {shape}")
    array: np.ndarray[Any, Any] = arguments.convert(value, shape.dtype.numpy_dtype, dims, where)
    return array


def _check_sizes(value: Any, shape: Shape) -> None:
    """Raise if a result has other sizes than its shape states, which may be dynamic only where it says so."""
    if isinstance(value, tuple):
        for part, of_part in zip(value, shape.elements, strict=True):
            _check_sizes(part, of_part)
    elif isinstance(value, np.ndarray) and not fits(value.shape, shape):
        raise ShapeError(f"a result has the present sizes {list(value.shape)}, but {shape} is stated")
