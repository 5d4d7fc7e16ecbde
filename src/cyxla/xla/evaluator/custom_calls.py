"""Custom calls: a registry of targets and what they compute.

To give a target a meaning, register a function of the run, the instruction and the operands' values::

    @register_custom_call("my_square")
    def my_square(ev, ins, x):
        return x * x
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeAlias, overload

from cyxla.errors import AlreadyExistsError, UnimplementedError
from cyxla.xla.evaluator.values import Value
from cyxla.xla.hlo.backend_config import read_options
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule

CustomCall: TypeAlias = Callable[..., Value]  # (evaluation, instruction, *operands) -> Value

_TARGETS: dict[str, CustomCall] = {}
_BUILT_IN = "cyxla.xla.evaluator.targets.built_in"  # stands above this module, hence a name and no import
_PYTHON_CALLBACKS = re.compile(r"(^|_)python_(cpu_|gpu_)?callback")


@overload
def register_custom_call(target: str, function: CustomCall, *, replace: bool = False) -> CustomCall: ...
@overload
def register_custom_call(target: str, *, replace: bool = False) -> Callable[[CustomCall], CustomCall]: ...
def register_custom_call(
    target: str, function: CustomCall | None = None, *, replace: bool = False
) -> CustomCall | Callable[[CustomCall], CustomCall]:
    """Give a custom-call target a meaning.

    Parameters
    ----------
    target : str
        The ``custom_call_target``.
    function : callable, optional
        Called as ``function(evaluation, instruction, *operands)`` with NumPy arrays (tuples of them for tuples);
        returns an array, or a tuple of arrays for a tuple result. Operands must not be written to. `options_of` reads
        the instruction's configuration. Without it, the result is a decorator.
    replace : bool
        Allow a target that has a meaning already.

    Raises
    ------
    AlreadyExistsError
        The target has a meaning, and `replace` is false.
    """

    def register(meaning: CustomCall) -> CustomCall:
        if target in _TARGETS and not replace:
            raise AlreadyExistsError(f"custom-call target {target!r} is registered", hint="pass replace=True")
        _TARGETS[target] = meaning
        return meaning

    return register if function is None else register(function)


def unregister_custom_call(target: str) -> None:
    """Take back what `register_custom_call` gave; unknown targets are ignored."""
    _TARGETS.pop(target, None)


def custom_call_targets() -> list[str]:
    """Every registered target, sorted."""
    _load_built_in()
    return sorted(_TARGETS)


def _load_built_in() -> None:
    import_module(_BUILT_IN)


def find_custom_call(target: str, extra: Mapping[str, CustomCall] | None = None) -> CustomCall:
    """Look up the meaning of a target; those in `extra` come first.

    Raises
    ------
    UnimplementedError
        It has none.
    """
    _load_built_in()
    found = (extra or {}).get(target) or _TARGETS.get(target)
    if found is None:
        hint = "cyxla.register_custom_call gives it one"
        if _PYTHON_CALLBACKS.search(target):
            hint = f"the Python function lives in the process that wrote the program; {hint}"
        raise UnimplementedError(f"custom-call target {target!r} has no meaning here", hint=hint)
    return found


def check_custom_calls(module: HloModule, extra: Iterable[str] = ()) -> None:
    """Raise unless every custom call that the entry reaches has a meaning.

    Parameters
    ----------
    module : HloModule
        The module.
    extra : iterable of str
        Targets that the run will know besides the registered ones.

    Raises
    ------
    UnimplementedError
        A target has none; the message names it.
    """
    known = set(extra)
    for computation in module.post_order():
        for ins in computation.instructions:
            if ins.opcode == "custom-call" and ins.attrs["custom_call_target"] not in known:
                try:
                    find_custom_call(ins.attrs["custom_call_target"])
                except UnimplementedError as error:
                    place = module.places.get(ins.attrs["custom_call_target"])
                    error.where = "; ".join(t for t in (place, f"{ins!r} of computation {computation.name}") if t)
                    raise


def options_of(ins: Instruction) -> dict[str, Any]:
    """Read the options of a backend configuration: ``{uplo = 76 : ui8, left = true}`` or a JSON object of scalars."""
    return read_options(ins.extras.get("backend_config"))
