"""Programs to compile ahead of time, from functions, HLO and StableHLO."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from cyxla.aot.checks import Check, check_of
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.client import read_program
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long main mutable namespace new noexcept not
not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""


@dataclass(frozen=True)
class NamedArray:
    """Array among the arguments or results of a program.

    Attributes
    ----------
    name : str
        Name in the program, such as ``params['w']``.
    dtype : numpy.dtype
        Element type.
    dims : tuple of int
        Sizes.
    """

    name: str
    dtype: np.dtype[Any]
    dims: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.dims, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Program:
    """Program that is compiled ahead of time.

    Attributes
    ----------
    name : str
        Identifier in C.
    module : HloModule
        The program before any pass.
    arguments, results : tuple of NamedArray
        Arrays of a call, in the order of the module's leaves, without bound arguments.
    result_tree : object
        Structure of the result, with the indices of `results` in place of arrays.
    parameters : tuple of str
        Names of the arguments as the user passes them, of which each may hold several arrays.
    argument_trees : tuple
        Structure of each of `parameters`, with the indices of `arguments`, and None for static and bound values.
    rank0 : tuple of str
        Kind of each result without dimensions: ``"scalar"``, ``"array"``, or ``"python"`` for Python's numbers.
    written : mapping of int to int
        Arguments that the function writes: index of each in `arguments`, and of its new value in `results`.
    bound : mapping of int to object
        Values of arguments that are part of the library, by parameter of the module.
    checks : tuple of Check
        Checks at run time. If there are any, the last result of the module is the number of the failed one, from 1 on,
        and a number to show.
    options : CompileOptions
        Options of the compilation.
    doc : str
        Description in some lines.
    """

    name: str
    module: HloModule
    arguments: tuple[NamedArray, ...]
    results: tuple[NamedArray, ...]
    result_tree: Any
    parameters: tuple[str, ...] = ()
    argument_trees: tuple[Any, ...] = ()
    rank0: tuple[str, ...] = ()
    written: Mapping[int, int] = field(default_factory=dict)
    bound: Mapping[int, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    options: CompileOptions = field(default_factory=CompileOptions)
    doc: str = ""


def program(
    obj: Any, *specs: Any, name: str | None = None, bind: Mapping[int | str, Any] | None = None, **options: Any
) -> Program:
    """Return the program of an object.

    Parameters
    ----------
    obj : callable, str, bytes, path, HloModule or XlaComputation
        Function written with NumPy, jitted or not; HLO or StableHLO text, a serialised proto, or a file of either.
    *specs
        Shapes and dtypes of the arguments, as of `cyxla.compile`.
    name : str, optional
        Identifier in C; by default one made of the program's name.
    bind : mapping of (int or str) to array, optional
        Arguments that become part of the library, by number or name.
    **options
        Fields of `cyxla.xla.service.CompileOptions`; for functions also the options of `cyxla.jit`.

    Raises
    ------
    InvalidArgumentError
        The name is not an identifier of C, or an argument that is bound does not exist or has another type.
    UnimplementedError
        The program has tokens among its arguments or results.
    """
    if isinstance(obj, Program):
        made = obj
    elif callable(obj):
        made = _of_function(obj, specs, options)
    else:
        made = of_module(_read(obj, specs), CompileOptions.of({**options, "donate": ()}))
    if name is not None or not is_identifier(made.name):
        made = replace(made, name=identifier(made.name) if name is None else checked_name(name))
    return bound(made, bind) if bind else made


def of_module(module: HloModule, options: CompileOptions) -> Program:
    """Return the program of an HLO module."""
    parameters = [(p.name, p.shape) for p in module.parameters]
    arguments = [a for name, shape in parameters for a in _arrays(name, shape)]
    root = module.entry.root.shape
    parts = root.elements if root.is_tuple else (root,)
    names = ["result"] if len(parts) == 1 else [f"result{k}" for k in range(len(parts))]
    results = [a for name, shape in zip(names, parts, strict=True) for a in _arrays(name, shape)]
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


def _read(obj: Any, specs: Sequence[Any]) -> HloModule:
    if isinstance(obj, os.PathLike):
        data = Path(obj).read_bytes()
        obj = data if Path(obj).suffix == ".pb" else data.decode()
    if not specs:
        return read_program(obj)
    from cyxla.xla.client.program import read_with_specs

    return read_with_specs(obj, specs)


def _of_function(function: Callable[..., Any], specs: Sequence[Any], options: Mapping[str, Any]) -> Program:
    """Trace a function."""
    from cyxla.numpy.calls.jitted import Jitted
    from cyxla.numpy.calls.lowering import Spec

    if isinstance(function, Jitted):
        options = {**function.settings, **options}
        function = function.function
    jitted: Jitted[..., Any] = Jitted(function, **options)
    call, lowered = jitted.trace_call(*specs)
    compiled = replace(CompileOptions.of(jitted.options), live_results=lowered.live_results)
    whole = of_module(lowered.module, compiled)
    names = [n for n, spec in zip(call.names, call.specs, strict=True) if isinstance(spec, Spec)]
    arguments = tuple([replace(a, name=n) for a, n in zip(whole.arguments, names, strict=True)])
    size = lowered.tree.count
    outputs = [replace(a, name=n) for a, n in zip(whole.results, _result_names(lowered, names), strict=False)]
    return replace(
        whole,
        name=function.__name__,
        arguments=arguments,
        results=tuple(outputs),
        result_tree=lowered.tree.build(range(size)),
        argument_trees=_argument_trees(call, Spec),
        parameters=tuple([a.name for a in call.binding.arguments]),
        rank0=tuple([kind.name.lower() for kind in lowered.rank0]),
        written={k: size + n for n, k in enumerate(lowered.writes)},
        checks=tuple(map(check_of, lowered.program.checks)) if lowered.fails else (),
        doc=(function.__doc__ or "").strip(),
    )


def _argument_trees(call: Any, array: type) -> tuple[Any, ...]:
    """Return the structure of each argument, with numbers in place of arrays and None in place of static values."""
    numbers = count()
    leaves = iter([next(numbers) if isinstance(spec, array) else None for spec in call.specs])
    return tuple([tree.take(leaves) for tree in call.trees])


def _result_names(lowered: Any, arguments: Sequence[str]) -> list[str]:
    from cyxla.numpy.calls.argument_adapters import STATIC_TYPES
    from cyxla.numpy.tracing.containers import paths

    numbered = lowered.tree.build(range(lowered.tree.count))
    return [*paths(numbered, "result", STATIC_TYPES), *(f"new {arguments[k]}" for k in lowered.writes)]


def _arrays(name: str, shape: Shape) -> Iterator[NamedArray]:
    """Yield the arrays of a shape; one of bounded size comes padded, followed by its sizes."""
    if shape.is_tuple:
        for k, part in enumerate(shape.elements):
            yield from _arrays(f"{name}[{k}]", part)
        return
    if shape.dtype is ElementType.TOKEN or shape.dtype.numpy_dtype is None:
        raise UnimplementedError(f"{shape} as argument or result of a program that is compiled ahead of time")
    yield NamedArray(name, shape.dtype.numpy_dtype, shape.dims)
    for d, is_dynamic in enumerate(shape.dynamic):
        if is_dynamic:
            yield NamedArray(f"size {d} of {name}", np.dtype(np.int32), ())


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


# --- bound arguments --------------------------------------------------------------------------------------------------


def bound(given: Program, values: Mapping[int | str, Any]) -> Program:
    """Return a program with some arguments bound.

    Raises
    ------
    InvalidArgumentError
        An argument does not exist, or has another type.
    """
    from cyxla.xla.service.bound_arguments import check_bound

    free = [k for k in range(len(given.module.parameters)) if k not in given.bound]
    names = _top_names(given, free)
    shapes = tuple(given.module.parameters[k].shape for k in free)
    fixed = {free[k]: v for k, v in check_bound(values, names, shapes).items()}
    if any(given.module.parameters[k].shape.is_tuple or given.module.parameters[k].shape.is_dynamic for k in fixed):
        raise UnimplementedError("binding of a tuple, or of an array of bounded size")
    arrays, removed = [], set()
    first = 0
    for k in free:
        count = sum(1 for _ in _arrays("", given.module.parameters[k].shape))
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
        bound={**given.bound, **{k: np.array(v, order="C") for k, v in fixed.items()}},
    )


def _top_names(given: Program, free: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the free parameters, as the user knows them."""
    if len(free) == len(given.arguments):
        return tuple([a.name for a in given.arguments])
    return tuple([given.module.parameters[k].name for k in free])


def _renumbered(tree: Any, numbers: Mapping[int, int]) -> Any:
    """Return a structure with other numbers; None if nothing of it is left."""
    from cyxla.numpy.tracing.containers import flatten

    leaves, structure = flatten(tree)
    kept = [numbers.get(leaf) for leaf in leaves]
    if not leaves:
        return tree
    return None if all(k is None for k in kept) else structure.build(kept)


# --- names ------------------------------------------------------------------------------------------------------------


def is_identifier(name: str) -> bool:
    """Return whether a name is an identifier of C and C++."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in _KEYWORDS.split()


def checked_name(name: str) -> str:
    """Return an identifier that the user gave.

    Raises
    ------
    InvalidArgumentError
        It is none, or a keyword of C or C++.
    """
    if not is_identifier(name):
        raise InvalidArgumentError(f"name={name!r} is not an identifier of C", hint="use letters, digits and _")
    return name


def identifier(text: str) -> str:
    """Return an identifier made of a text."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return words if is_identifier(words) else f"p_{words}".rstrip("_")
