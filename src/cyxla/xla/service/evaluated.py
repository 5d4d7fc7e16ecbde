"""An executable that evaluates its module: right before fast, and on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cyxla._native import arguments
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator import Options, Value, check_custom_calls, evaluate
from cyxla.xla.evaluator.values import TOKEN_VALUE, fits
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.devices import check_devices
from cyxla.xla.service.donation import settled
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions
from cyxla.xla.service.pickling import reduced


class EvaluatedExecutable(Executable):
    """Evaluates a module on NumPy arrays.

    Raises
    ------
    UnimplementedError
        A custom call in it has no meaning, or it needs several devices.
    """

    def __init__(self, module: HloModule, options: CompileOptions) -> None:
        check_custom_calls(module, options.custom_calls)
        check_devices(module)
        options = settled(options, module)  # arguments are not written here, but those donated have to be there
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
        places = arguments.match_out(out, _numbered(self.outputs, 0), tuple(map(_spec, self.outputs.leaves())))
        options = Options(
            custom_calls=self._options.custom_calls, seed=self._options.seed, max_trips=self._options.max_trips
        )
        result = evaluate(self._module, [arguments.build(tree, values) for tree in trees], options=options)
        return _deliver(result, iter(places))

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self._module, self.platform, self._options, {})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments in the program."""
        return tuple(p.name for p in self._module.parameters)

    def hlo(self, stage: str = "optimized") -> str:
        """HLO text; both stages are the program as given."""
        if stage not in ("input", "optimized"):
            raise InvalidArgumentError(f"there is no stage {stage!r}", hint="input or optimized")
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


def _spec(shape: Shape) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """What `out=` must hold; nothing fits a token."""
    return (shape.dtype.numpy_dtype, shape.dims) if shape.dtype.numpy_dtype is not None else (np.dtype("V"), ())


def _conform(value: Any, shape: Shape, where: arguments.Where) -> Value:
    if shape.dtype is ElementType.TOKEN:
        return TOKEN_VALUE
    if shape.dtype.numpy_dtype is None:
        raise UnimplementedError(f"{arguments.name(where)} is {shape}, which no NumPy array can be")
    dims = np.shape(value) if shape.is_dynamic else shape.dims  # of a dynamic shape, anything within the bounds
    if shape.is_dynamic and not fits(dims, shape):
        raise ShapeError(f"{arguments.name(where)}: got {arguments.describe(value)}, want {shape}")
    array: np.ndarray[Any, Any] = arguments.convert(value, shape.dtype.numpy_dtype, dims, where)
    return array


def _deliver(result: Any, places: Iterator[Any]) -> Any:
    """Results as they came, or copied to where `out` says."""
    if isinstance(result, tuple):
        return tuple([_deliver(part, places) for part in result])
    place = next(places)
    if place is None:
        return result
    if place.shape != result.shape:
        raise ShapeError(f"out: the result came as {arguments.describe(result)}, want {arguments.describe(place)}")
    np.copyto(place, result)
    return place
