"""Registry of custom-call targets and their implementations.

An implementation is a function of the evaluation, the instruction and the operands' values::

    @register_custom_call("my_square")
    def my_square(ev, ins, x):
        return x * x
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, overload

from cyxla.errors import AlreadyExistsError, UnimplementedError
from cyxla.xla.evaluator.values import Value
from cyxla.xla.hlo.backend_config import read_options
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule

CustomCall: TypeAlias = Callable[..., Value]  # (evaluation, instruction, *operands) -> Value

_TARGETS: dict[str, CustomCall] = {}
_built_in_loaders: list[Callable[[], object]] = []
_PACKAGE = "cyxla.xla.evaluator."  # with the implementations of built-in targets
_PYTHON_CALLBACKS = re.compile(r"(^|_)python_(cpu_|gpu_)?callback")


@overload
def register_custom_call(target: str, function: CustomCall, *, replace: bool = False) -> CustomCall: ...
@overload
def register_custom_call(target: str, *, replace: bool = False) -> Callable[[CustomCall], CustomCall]: ...
def register_custom_call(
    target: str, function: CustomCall | None = None, *, replace: bool = False
) -> CustomCall | Callable[[CustomCall], CustomCall]:
    """Register an implementation of a custom-call target.

    Parameters
    ----------
    target : str
        The target, ``custom_call_target`` of instructions.
    function : callable, optional
        The implementation. It is called as ``function(evaluation, instruction, *operands)`` with NumPy arrays (tuples
        of them for tuples), and returns an array, or a tuple of arrays for a tuple result. It must not write to
        operands. `options_of` reads the instruction's configuration. If omitted, the result is a decorator.
    replace : bool
        Replace an existing implementation.

    Raises
    ------
    AlreadyExistsError
        The target is registered, and `replace` is false.
    """

    def register(implementation: CustomCall) -> CustomCall:
        if target in _TARGETS and not replace:
            raise AlreadyExistsError(f"custom-call target {target!r} is registered", hint="pass replace=True")
        _TARGETS[target] = implementation
        return implementation

    return register if function is None else register(function)


def unregister_custom_call(target: str) -> None:
    """Remove a target of `register_custom_call`; unknown targets are ignored."""
    _TARGETS.pop(target, None)


def custom_call_targets() -> list[str]:
    """Return all registered targets, sorted."""
    _load_built_in()
    return sorted(_TARGETS)


def load_built_in_by(loader: Callable[[], object]) -> None:
    """Register the function that registers the built-in targets, which stand in a layer above this module."""
    _built_in_loaders[:] = [loader]


def _load_built_in() -> None:
    for load in tuple(_built_in_loaders):
        load()
    _built_in_loaders.clear()


def is_built_in(target: str) -> bool:
    """Return whether a target is registered, and its implementation is this package's."""
    _load_built_in()
    implementation = _TARGETS.get(target)
    return implementation is not None and implementation.__module__.startswith(_PACKAGE)


def find_custom_call(target: str, extra: Mapping[str, CustomCall] | None = None) -> CustomCall:
    """Return the implementation of a target; those in `extra` take precedence.

    Raises
    ------
    UnimplementedError
        The target is not registered.
    """
    _load_built_in()
    implementation = (extra or {}).get(target) or _TARGETS.get(target)
    if implementation is None:
        hint = "register it by cyxla.register_custom_call"
        if _PYTHON_CALLBACKS.search(target):
            hint = f"the Python function lives in the process that wrote the program; {hint}"
        raise UnimplementedError(f"custom-call target {target!r} is not registered", hint=hint)
    return implementation


def check_custom_calls(module: HloModule, extra: Iterable[str] = ()) -> None:
    """Raise unless every custom call that the entry reaches is registered.

    Parameters
    ----------
    module : HloModule
        The module to check.
    extra : iterable of str
        Further targets that the run will have.

    Raises
    ------
    UnimplementedError
        A target is not registered; the message names it.
    """
    targets = set(extra)
    for computation in module.post_order():
        for ins in computation.instructions:
            if ins.opcode == "custom-call" and ins.attrs["custom_call_target"] not in targets:
                try:
                    find_custom_call(ins.attrs["custom_call_target"])
                except UnimplementedError as error:
                    location = module.custom_call_locations.get(ins.attrs["custom_call_target"])
                    error.where = "; ".join(t for t in (location, f"{ins!r} of computation {computation.name}") if t)
                    raise


def options_of(ins: Instruction) -> dict[str, Any]:
    """Return the options of a backend configuration: ``{uplo = 76 : ui8, left = true}`` or a JSON object of scalars."""
    return read_options(ins.extras.get("backend_config"))
