"""Pickling of executables: a pickle holds the program, which is compiled, or found in the cache, when unpickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from cyxla.xla.service.local_service import LocalService
from cyxla.xla.service.options import CompileOptions

if TYPE_CHECKING:
    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service.executable import Executable

Rebuild = Callable[[bytes, str, dict[str, Any], dict[int | str, Any]], "Executable"]


def reduce_executable(
    module: HloModule, platform: str, options: CompileOptions, fixed: Mapping[int, Any]
) -> tuple[Any, ...]:
    """Return the ``__reduce__`` tuple for an executable of a module with some arguments bound."""
    option_values = {f.name: getattr(options, f.name) for f in fields(options)}
    return _rebuild[0], (
        module.to_proto(),
        platform,
        {**option_values, "custom_calls": dict(options.custom_calls)},
        dict(fixed),
    )


def rebuild(program: bytes, platform: str, options: dict[str, Any], fixed: dict[int | str, Any]) -> Executable:
    """Compile a serialised program."""
    from cyxla.xla.hlo import HloModule

    executable = LocalService(platform).build_executable(HloModule.from_proto(program), CompileOptions(**options))
    return executable.bind(fixed) if fixed else executable


_rebuild: list[Rebuild] = [rebuild]


def register_rebuild(function: Rebuild) -> None:
    """Set the function that pickles name; its module must register the platforms that it needs."""
    _rebuild[:] = [function]
