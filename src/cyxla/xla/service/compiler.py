"""Compilers by platform name: how a backend plugs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from cyxla.errors import AlreadyExistsError, NotFoundError
from cyxla.forking import new_lock
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from cyxla.xla.hlo import HloModule

ENTRY_POINTS = "cyxla.backends"


class Compiler(ABC):
    """Turns HLO modules into executables for one platform.

    A backend is a subclass, registered with `register_compiler` or announced by an installed package as an entry point
    of the group ``cyxla.backends`` whose name is the platform and whose value is the class, or a function without
    arguments that registers it and whatever else comes with it.
    """

    platform: ClassVar[str]

    @abstractmethod
    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """Rewrite the module for this platform; the argument is left as it is."""

    @abstractmethod
    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """Make an executable of a module that went through `run_hlo_passes`.

        Raises
        ------
        UnimplementedError
            Names every opcode that this platform cannot run.
        """

    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Compile a verified module."""
        return self.run_backend(self.run_hlo_passes(module, options), options)

    def compile_soon(
        self, module: HloModule, options: CompileOptions
    ) -> tuple[Executable, Callable[[], Executable] | None]:
        """Compile a verified module in two turns, where a platform has something that runs it at once.

        Returns
        -------
        Executable
            Runs the program.
        callable or None
            Makes one that runs it faster, and gives the same bits; None if the first is what `compile` gives.
        """
        return self.compile(module, options), None

    def compile_written(
        self, program: str | bytes, read: Callable[[], HloModule], options: CompileOptions
    ) -> Executable:
        """Compile a program that has not been read yet; a platform may know it by its bytes.

        Parameters
        ----------
        program : str or bytes
            As the user gave it.
        read : callable
            Gives the verified module of it.
        options : CompileOptions
            How to compile.
        """
        return self.compile(read(), options)


def _announced() -> Iterable[EntryPoint]:
    from importlib.metadata import (
        entry_points,
    )  # reads the metadata of every installed package: only for platforms that need it

    return entry_points(group=ENTRY_POINTS)


Factory = Callable[[], Compiler]
_FACTORIES: dict[str, Factory] = {}
_LOADED: dict[tuple[str, str], Factory] = {}  # by name and value of the entry point
_LOADING = new_lock()


def load_announced() -> None:
    """Load the backends of all installed packages, each once; one that cannot be loaded is left out with a warning."""
    for point in _announced():
        try:
            _load(point)
        except Exception as error:  # a broken package must not take the others with it
            import logging

            logging.getLogger("cyxla.backends").warning(
                "the backend %s (%s) was not loaded: %r", point.name, point.value, error
            )


def _load(point: EntryPoint) -> Factory:
    """What makes the compiler that an entry point announces; a function that registers things is called once."""
    key = (point.name, point.value)
    with _LOADING:
        if key not in _LOADED:
            found = point.load()
            if not isinstance(found, type):
                found()
                if point.name not in _FACTORIES:
                    raise NotFoundError(
                        f"{point.value}() registered no compiler for platform {point.name!r}",
                        hint=f'call register_compiler("{point.name}", …) in it',
                    )
                found = _FACTORIES[point.name]
            _LOADED[key] = found
        return _LOADED[key]


def register_compiler(platform: str, factory: Factory) -> None:
    """Make a platform known under a name.

    Raises
    ------
    AlreadyExistsError
        The name is taken.
    """
    if platform in _FACTORIES:
        raise AlreadyExistsError(f"platform {platform!r} is registered already")
    _FACTORIES[platform] = factory


def platforms() -> list[str]:
    """Names of the platforms, those of installed packages included."""
    return sorted({*_FACTORIES, *(point.name for point in _announced())})


def compiler_for(platform: str) -> Compiler:
    """The compiler of a platform; one object for all callers.

    Raises
    ------
    NotFoundError
        There is no such platform.
    """
    return _make(platform, _FACTORIES.get(platform))


@lru_cache
def _make(platform: str, factory: Factory | None) -> Compiler:
    if factory is None:
        announced = [point for point in _announced() if point.name == platform]
        if not announced:
            raise NotFoundError(f"no platform {platform!r}", hint=f"there are {', '.join(platforms())}")
        factory = _load(announced[0])
    return factory()
