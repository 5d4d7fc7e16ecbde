"""The base class of backends, and the registry of compilers by platform name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from cyxla.errors import AlreadyExistsError, NotFoundError
from cyxla.forking import new_lock
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from cyxla.types import Shape
    from cyxla.xla.hlo import HloModule

ENTRY_POINTS = "cyxla.backends"


class Compiler(ABC):
    """A compiler from HLO modules to executables for one platform.

    A backend is a subclass. It is registered with `register_compiler`, or by an installed package as an entry point of
    the group ``cyxla.backends``, whose name is the platform and whose value is the class, or a function without
    arguments that registers the class and any devices or kernels.
    """

    platform: ClassVar[str]

    @abstractmethod
    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """Return the module rewritten for this platform; the argument is not changed."""

    @abstractmethod
    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """Build the executable of a module that `run_hlo_passes` returned.

        Raises
        ------
        UnimplementedError
            The platform does not support an opcode; the message names all of them.
        """

    @property
    def generates_code(self) -> bool:
        """True unless programs run without code of their own for lack of tools on this machine."""
        return True

    def prepare(self) -> None:  # noqa: B027  most platforms need no preparation
        """Begin in the background what the first compilation would wait for, while its program is written."""

    def whole_arrays(
        self, module: HloModule, live_results: Sequence[tuple[int, int, int]], is_counted: Callable[[Shape], bool]
    ) -> list[Shape]:
        """Return the shapes of arrays that programs compute up to their bounds, whatever their sizes at run time.

        Parameters
        ----------
        module : HloModule
            Module before any pass.
        live_results : sequence of tuple of int
            Option `live_results` of the compilation.
        is_counted : callable
            Function that returns True for the shape of an array that would be returned.
        """
        return []

    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Compile a verified module."""
        return self.run_backend(self.run_hlo_passes(module, options), options)

    def compile_tiered(
        self, module: HloModule, options: CompileOptions
    ) -> tuple[Executable, Callable[[], Executable] | None]:
        """Compile a verified module in two stages, if the platform has a tier that starts faster.

        Returns
        -------
        Executable
            Executable of the first stage.
        callable or None
            Function that builds a faster executable with bitwise equal results; None if the first executable is
            already that of `compile`.
        """
        return self.compile(module, options), None

    def compile_source(
        self, program: str | bytes, read: Callable[[], HloModule], options: CompileOptions
    ) -> Executable:
        """Compile a program that has not been parsed yet, which a platform may find in a cache by its bytes.

        Parameters
        ----------
        program : str or bytes
            Program as the user passed it.
        read : callable
            Function that returns the verified module of the program.
        options : CompileOptions
            Options of the compilation.
        """
        return self.compile(read(), options)


def _entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of all backends; reads the metadata of every installed package."""
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


Factory = Callable[[], Compiler]
_FACTORIES: dict[str, Factory] = {}
_FACTORY_OF_ENTRY_POINT: dict[tuple[str, str], Factory] = {}  # by name and value of the entry point
_LOCK = new_lock()


def load_entry_points() -> None:
    """Load the backends of all installed packages, each once; one that fails to load is skipped with a warning."""
    for point in _entry_points():
        try:
            _load(point)
        except Exception as error:  # a broken package must not affect the others
            import logging

            logging.getLogger("cyxla.backends").warning(
                "the backend %s (%s) was not loaded: %r", point.name, point.value, error
            )


def _load(point: EntryPoint) -> Factory:
    """Return the compiler factory of an entry point; a registration function is called once."""
    key = (point.name, point.value)
    with _LOCK:
        if key not in _FACTORY_OF_ENTRY_POINT:
            factory = point.load()
            if not isinstance(factory, type):
                factory()
                if point.name not in _FACTORIES:
                    raise NotFoundError(
                        f"{point.value}() registered no compiler for platform {point.name!r}",
                        hint=f'call register_compiler("{point.name}", …) in it',
                    )
                factory = _FACTORIES[point.name]
            _FACTORY_OF_ENTRY_POINT[key] = factory
        return _FACTORY_OF_ENTRY_POINT[key]


def register_compiler(platform: str, factory: Factory) -> None:
    """Register the compiler of a platform.

    Raises
    ------
    AlreadyExistsError
        The platform is already registered.
    """
    if platform in _FACTORIES:
        raise AlreadyExistsError(f"platform {platform!r} is already registered")
    _FACTORIES[platform] = factory


def platforms() -> list[str]:
    """Return the names of all platforms, including those of installed packages."""
    return sorted({*_FACTORIES, *(point.name for point in _entry_points())})


def compiler_for(platform: str) -> Compiler:
    """Return the compiler of a platform, which is one object for all callers.

    Raises
    ------
    NotFoundError
        The platform does not exist.
    """
    return _make(platform, _FACTORIES.get(platform))


@lru_cache
def _make(platform: str, factory: Factory | None) -> Compiler:
    if factory is None:
        points = [point for point in _entry_points() if point.name == platform]
        if not points:
            raise NotFoundError(f"no platform {platform!r}", hint=f"there are {', '.join(platforms())}")
        factory = _load(points[0])
    return factory()
