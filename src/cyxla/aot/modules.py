"""Programs of HLO modules, and arguments that are bound while a program is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.aot.program import Fixed, NamedArray, Program
from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.containers import flatten
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions
from cyxla.xla.service.bound_arguments import check_bound


def of_module(module: HloModule, options: CompileOptions) -> Program:
    """Return the program of an HLO module."""
    parameters = [(p.name, p.shape) for p in module.parameters]
    arguments = [a for name, shape in parameters for a in arrays_of(name, shape)]
    root = module.entry.root.shape
    parts = root.elements if root.is_tuple else (root,)
    names = ["result"] if len(parts) == 1 else [f"result{k}" for k in range(len(parts))]
    results = [a for name, shape in zip(names, parts, strict=True) for a in arrays_of(name, shape)]
    trees, _ = _number([shape for _, shape in parameters], 0)
    tree = _number([root], 0)[0][0]
    return Program(
        name=module.name,
        module=module,
        arguments=tuple(arguments),
        results=tuple(results),
        result_tree=tree,
        parameters=tuple([name for name, _ in parameters]),
        argument_trees=trees,
        rank0=("array",) * len(results),
        options=options,
    )


def arrays_of(name: str, shape: Shape) -> Iterator[NamedArray]:
    """Yield the arrays of a shape; one of bounded size comes padded, followed by its sizes."""
    if shape.is_tuple:
        for k, part in enumerate(shape.elements):
            yield from arrays_of(f"{name}[{k}]", part)
        return
    if shape.dtype is ElementType.TOKEN or shape.dtype.numpy_dtype is None:
        raise UnimplementedError(f"{shape} as argument or result of a program that is compiled ahead of time")
    yield NamedArray(name, shape.dtype.numpy_dtype, shape.dims)
    for d, is_dynamic in enumerate(shape.dynamic):
        if is_dynamic:
            yield NamedArray(f"size {d} of {name}", np.dtype(np.int32), (), shape.dims[d])


def _number(shapes: Sequence[Shape], first: int) -> tuple[tuple[Any, ...], int]:
    """Return the shapes with numbers in place of arrays, and the number after the last one."""
    trees: list[Any] = []
    for shape in shapes:
        if shape.is_tuple:
            tree, first = _number(shape.elements, first)
            trees.append(tree)
        else:
            trees.append(first)
            first += 1 + sum(shape.dynamic)
    return tuple(trees), first


def bound(given: Program, values: Mapping[int | str, Any]) -> Program:
    """Return a program with some arguments bound.

    Raises
    ------
    InvalidArgumentError
        An argument does not exist, or has another type.
    """
    free = [k for k in range(len(given.module.parameters)) if k not in given.bound]
    names = _top_names(given, free)
    shapes = tuple(given.module.parameters[k].shape for k in free)
    fixed = {free[k]: v for k, v in check_bound(values, names, shapes).items()}
    if any(given.module.parameters[k].shape.is_tuple or given.module.parameters[k].shape.is_dynamic for k in fixed):
        raise UnimplementedError("binding of a tuple, or of an array of bounded size")
    arrays: list[NamedArray] = []
    removed: set[int] = set()
    first = 0
    for k in free:
        count = sum(1 for _ in arrays_of("", given.module.parameters[k].shape))
        if k in fixed:
            removed.update(range(first, first + count))
        first += count
    numbers: dict[int, int] = {}
    for k, argument in enumerate(given.arguments):
        if k not in removed:
            numbers[k] = len(arrays)
            arrays.append(argument)
    trees = [_renumbered(t, numbers) for t in given.argument_trees]
    written = {numbers[k]: n for k, n in given.written.items() if k in numbers}
    return replace(
        given,
        arguments=tuple(arrays),
        argument_trees=tuple(trees),
        written=written,
        variables=frozenset(numbers[k] for k in given.variables if k in numbers),
        bound={**given.bound, **{k: np.array(v, order="C") for k, v in fixed.items()}},
    )


def _top_names(given: Program, free: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the free parameters, as the user knows them."""
    if len(free) == len(given.arguments):
        return tuple([a.name for a in given.arguments])
    return tuple([given.module.parameters[k].name for k in free])


def _renumbered(tree: Any, numbers: Mapping[int, int]) -> Any:
    """Return a structure with other numbers; None if nothing of it is left."""
    leaves, structure = flatten(tree)
    kept = [leaf if isinstance(leaf, Fixed) else numbers.get(leaf) for leaf in leaves]
    if all(isinstance(leaf, Fixed) for leaf in leaves):
        return tree
    return None if not any(isinstance(k, int) for k in kept) else structure.build(kept)
