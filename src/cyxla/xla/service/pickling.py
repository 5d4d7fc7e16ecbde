"""Executables that travel to other processes: as the program, to be compiled or found compiled there."""

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


def reduced(module: HloModule, platform: str, options: CompileOptions, fixed: Mapping[int, Any]) -> tuple[Any, ...]:
    """What ``__reduce__`` gives for an executable of a module with some arguments fixed."""
    plain = {f.name: getattr(options, f.name) for f in fields(options)}
    return rebuilt, (module.to_proto(), platform, {**plain, "custom_calls": dict(options.custom_calls)}, dict(fixed))


def rebuilt(program: bytes, platform: str, options: dict[str, Any], fixed: dict[int | str, Any]) -> Executable:
    """Compile a serialised program."""
    from cyxla.xla.hlo import HloModule

    import_module("cyxla.xla.client")  # registers the platforms
    made = LocalService(platform).build_executable(HloModule.from_proto(program), CompileOptions(**options))
    return made.bind(fixed) if fixed else made
