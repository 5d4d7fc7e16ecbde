"""XLA's client classes: a client compiles computations, an executable runs on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cyxla.errors import ShapeError
from cyxla.xla.client import platforms as _platforms
from cyxla.xla.client.program import read_program
from cyxla.xla.feeds import Feeds, conform
from cyxla.xla.service import CompileOptions, Executable, LocalService, RunOptions

if TYPE_CHECKING:
    from concurrent.futures import Future

    from cyxla.types import Shape

_ = _platforms
_NO_OPTIONS = RunOptions()


class LocalExecutable:
    """A compiled computation.

    Attributes
    ----------
    executable : Executable
        Executable of the service.
    """

    def __init__(self, executable: Executable) -> None:
        self.executable = executable

    def run(self, arguments: Sequence[Any], *, out: Any = None) -> Any:
        """Run on NumPy arrays, one for each parameter.

        Raises
        ------
        InvalidArgumentError
            The number of arguments, a shape or an element type differs from the compiled program's.
        """
        return self.executable.execute_on_stream(_NO_OPTIONS if out is None else RunOptions(out=out), arguments)

    def run_async(self, arguments: Sequence[Any], *, out: Any = None) -> Future[Any]:
        """Start to run on NumPy arrays; see `Executable.execute_async`."""
        return self.executable.execute_async(*arguments, out=out)


class LocalClient:
    """A compiler of computations for one platform of this process.

    Parameters
    ----------
    platform : str
        Platform: ``"cpu"``, ``"interpreter"``, or a plugin's name.

    Attributes
    ----------
    feeds : Feeds
        Queues and channels of all programs that the client compiles.
    """

    def __init__(self, platform: str = "cpu") -> None:
        self.service = LocalService(platform)
        self.feeds = Feeds()

    @property
    def platform(self) -> str:
        """Name of the platform."""
        return self.service.platform

    def compile(
        self, computation: Any, argument_layouts: Sequence[Shape] | None = None, **options: Any
    ) -> LocalExecutable:
        """Compile a computation.

        Parameters
        ----------
        computation : XlaComputation, HloModule, str or bytes
            Program to compile.
        argument_layouts : sequence of Shape, optional
            Shapes of the arguments of later calls, which are checked against the parameters.
        **options
            Fields of `CompileOptions`.

        Raises
        ------
        ShapeError
            `argument_layouts` does not match the parameters.
        """
        module = read_program(computation)
        if argument_layouts is not None:
            _check_layouts([p.shape for p in module.parameters], argument_layouts)
        options.setdefault("feeds", self.feeds)
        return LocalExecutable(self.service.build_executable(module, CompileOptions.of(options)))

    def transfer_to_infeed(self, value: Any, *, timeout: float | None = None) -> None:
        """Queue a value for the next `infeed` of a program of this client; see `Feeds.infeed`.

        The program that takes it checks its type.
        """
        self.feeds.infeed(value, timeout=timeout)

    def transfer_from_outfeed(self, shape: Shape | None = None, *, timeout: float | None = None) -> Any:
        """Take the next value that a program of this client sent by `outfeed`, and wait until there is one.

        Parameters
        ----------
        shape : Shape, optional
            Shape that the value must have.
        timeout : float, optional
            Seconds to wait; by default those of `feeds`.

        Raises
        ------
        InvalidArgumentError
            The value has another shape.
        DeadlineExceededError
            No program sent a value in time.
        """
        value = self.feeds.outfeed(timeout=timeout)
        return value if shape is None else conform(value, shape, "outfeed")


def _check_layouts(parameters: Sequence[Shape], layouts: Sequence[Shape]) -> None:
    if len(parameters) != len(layouts):
        raise ShapeError(f"the computation takes {len(parameters)} arguments, got {len(layouts)} argument layouts")
    for k, (parameter, layout) in enumerate(zip(parameters, layouts, strict=True)):
        if not parameter.compatible(layout):
            raise ShapeError(f"argument layout {k} is {layout}, parameter {k} is {parameter}")
