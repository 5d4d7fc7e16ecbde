"""Pickling of executables: a pickle holds the program, which is compiled, or found in the cache, when unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cyxla.xla.service.local_service import LocalService
from cyxla.xla.service.options import CompileOptions

if TYPE_CHECKING:
    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service.executable import Executable


def reduce_executable(
    module: HloModule, platform: str, options: CompileOptions, fixed: Mapping[int, Any]
) -> tuple[Any, ...]:
    """Return the ``__reduce__`` tuple for an executable of a module with some arguments bound."""
    option_values = {f.name: getattr(options, f.name) for f in fields(options)}
    return rebuild, (
        module.to_proto(),
        platform,
        {**option_values, "custom_calls": dict(options.custom_calls)},
        dict(fixed),
    )


def rebuild(program: bytes, platform: str, options: dict[str, Any], fixed: dict[int | str, Any]) -> Executable:
    """Compile a serialised program."""
    from cyxla.xla.hlo import HloModule

    import_module("cyxla.xla.client")  # registers the platforms
    executable = LocalService(platform).build_executable(HloModule.from_proto(program), CompileOptions(**options))
    return executable.bind(fixed) if fixed else executable
