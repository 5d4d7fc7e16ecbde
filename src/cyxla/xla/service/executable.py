"""Compiled programs of any backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cyxla._native.arguments import count
from cyxla.errors import InvalidArgumentError, OpError, UnimplementedError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from cyxla.types import Shape
    from cyxla.xla.feeds import Feeds
    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service.analysis import MemoryAnalysis
    from cyxla.xla.service.explanation import Explanation
    from cyxla.xla.service.host_transfers import HostTransfers
    from cyxla.xla.service.profile import Profile


class RunOptions(NamedTuple):
    """Options of one run of a compiled program.

    Attributes
    ----------
    out : array or nested tuple of arrays, optional
        Arrays to write the results to.
    """

    out: Any = None


class Executable(ABC):
    """A compiled program, which is called with NumPy arrays, from several threads at once if need be.

    Attributes
    ----------
    platform : str
        Name of the backend that built it.
    inputs : tuple of Shape
        Shapes of the arguments.
    outputs : Shape
        Shape of the result: an array, or a tuple for a tuple root.
    tier : str
        Tier: ``"interpreter"``, ``"kernels"`` (prebuilt kernels only), or ``"native"`` (code generated for it).
    missing : OpError or None
        Tool that this machine lacks to run the program otherwise than in the evaluator; None if it lacks none.
    """

    platform: str
    tier: str = "interpreter"
    missing: OpError | None = None
    inputs: tuple[Shape, ...]
    outputs: Shape

    @abstractmethod
    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run the program.

        Parameters
        ----------
        *args : array_like
            One argument for each of `inputs`, of the same shape and element type; a tuple for a tuple-shaped
            parameter. Python numbers, and lists of them, are converted to the declared type.
        out : numpy.ndarray or nested tuple of them, optional
            Arrays to write the results to, of their exact sizes; a result with bounds has its present sizes.

        Returns
        -------
        numpy.ndarray or nested tuple of them
            Results of the shape `outputs`.

        Raises
        ------
        InvalidArgumentError
            An argument does not match its parameter; the message names the argument and both types.
        """

    def execute_on_stream(self, options: RunOptions, arguments: Sequence[Any]) -> Any:
        """Run on a sequence of arguments, synchronously: XLA's name for a call."""
        return self(*arguments, out=options.out)

    def execute_async(self, *args: Any, out: Any = None) -> Future[Any]:
        """Start a call on a thread of its own, and return its future result: XLA's ExecuteAsyncOnStream.

        Calls run at the same time, so that programs may send values to each other. The arguments must not be changed
        until the call is done; a call that has not begun can be cancelled.

        Parameters
        ----------
        *args, out
            Arguments of the call.

        Returns
        -------
        concurrent.futures.Future
            Future whose ``result()`` waits for the results, or raises the error of the call.
        """
        from cyxla.xla.service.async_execution import start

        return start(self, args, out)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters in the program; empty strings if the platform does not provide them."""
        return ("",) * len(self.inputs)

    def bind(self, arguments: Mapping[int | str, Any]) -> Executable:
        """Bind some arguments, such as weights, to fixed values.

        Arrays are copied, so that later changes have no effect. Binding further arguments of the result is equivalent
        to binding all of them at once.

        Parameters
        ----------
        arguments : mapping of int or str to array
            Values by argument number, or by parameter name; a tuple for a tuple-shaped parameter.

        Returns
        -------
        Executable
            Executable that takes the remaining arguments, in order.

        Raises
        ------
        InvalidArgumentError
            An argument does not exist or does not match its parameter; the message names it.
        """
        from cyxla.xla.service.bound_arguments import check_bound, private_copy

        fixed = check_bound(arguments, self.names, self.inputs)
        return BoundExecutable(self, {k: private_copy(v) for k, v in fixed.items()}) if fixed else self

    @property
    def feeds(self) -> Feeds:
        """The other end of the program's `infeed`, `outfeed`, `send` and `recv`: queues and handlers of the host."""
        raise UnimplementedError(f"programs of platform {self.platform} transfer nothing while they run")

    def infeed(self, value: Any, *, timeout: float | None = None) -> None:
        """Queue a value for the program's next `infeed`: XLA's TransferToInfeed.

        Parameters
        ----------
        value : array_like, or nested tuple of them
            Value of the shape that the program takes; it is copied. Python numbers, and lists of them, are converted
            to the declared type.
        timeout : float, optional
            Seconds to wait for room in the queue, if its capacity is limited; by default those of `feeds`.

        Raises
        ------
        InvalidArgumentError
            The program has no infeed of this type; the message names both types.
        """
        transfers = self._transfers
        self.feeds.infeed(value if transfers is None else transfers.infeed_value(value), timeout=timeout)

    def outfeed(self, *, timeout: float | None = None) -> Any:
        """Take the next value that the program sent by `outfeed`: XLA's TransferFromOutfeed.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for the program; by default those of `feeds`.

        Returns
        -------
        numpy.ndarray or nested tuple of them
            Values in the order in which the program sent them.

        Raises
        ------
        DeadlineExceededError
            The program sent no value in time.
        InvalidArgumentError
            The program has no outfeed.
        """
        if self._transfers is not None:
            self._transfers.check_outfeed()
        return self.feeds.outfeed(timeout=timeout)

    @cached_property
    def _transfers(self) -> HostTransfers | None:
        """Shapes of the values of infeeds and outfeeds; None if they are not known before the program runs."""
        from cyxla.xla.service.host_transfers import HostTransfers

        return HostTransfers.of(self._given_module())

    def _given_module(self) -> HloModule:
        """Return the program as the user gave it."""
        from cyxla.xla.hlo import HloModule

        return HloModule.from_text(self.hlo("input"))

    @abstractmethod
    def hlo(self, stage: str = "optimized") -> str:
        """Return the HLO text of the program: ``"input"`` as given, ``"optimized"`` after the passes."""

    @property
    def c_source(self) -> str:
        """The generated C code."""
        raise UnimplementedError(f"platform {self.platform} generates no C")

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by use: ``arguments``, ``results``, and ``temporaries``, ``constants`` if the platform plans them."""
        sizes = {"arguments": self.inputs, "results": (self.outputs,)}
        return {k: sum(leaf.nbytes for s in shapes for leaf in s.leaves()) for k, shapes in sizes.items()}

    @property
    def cost(self) -> dict[str, float]:
        """The estimated cost of a call."""
        return {}

    def as_text(self) -> str:
        """Return the HLO text of the program after the passes."""
        return self.hlo("optimized")

    def cost_analysis(self) -> dict[str, float]:
        """Return the operations (``"flops"``) and ``"bytes accessed"`` after the passes, with the estimates of `cost`.

        Loops with an unknown trip count count as one iteration.
        """
        from cyxla.xla.hlo import HloModule
        from cyxla.xla.service.analysis import cost_analysis

        return {**cost_analysis(HloModule.from_text(self.as_text())), **self.cost}

    def memory_analysis(self) -> MemoryAnalysis:
        """Return `memory` under the names of JAX."""
        from cyxla.xla.service.analysis import MemoryAnalysis

        return MemoryAnalysis.of(self.memory)

    def profile(self, *, reset: bool = False) -> Profile:
        """Return the time of each kernel of a program compiled with ``profile=True``.

        Parameters
        ----------
        reset : bool
            True to clear the measurements afterwards.

        Raises
        ------
        InvalidArgumentError
            The program was compiled without ``profile=True``.
        UnimplementedError
            The platform has no kernels to measure.
        """
        raise UnimplementedError(f"platform {self.platform} has no kernels to measure")

    @abstractmethod
    def explain(self) -> str:
        """Describe for people the kernels that run, the reasons for their extent, and the refusals."""

    def explanation(self) -> Explanation:
        """Return the content of `explain` as dataclasses; a platform without kernels has only a summary."""
        from cyxla.xla.service.explanation import Explanation

        return Explanation(self.platform, self.tier, self.explain())


class WrappedExecutable(Executable):
    """Base class of executables that delegate to another executable.

    Parameters
    ----------
    whole : Executable
        Executable of the whole program.
    """

    def __init__(self, executable: Executable) -> None:
        self._whole = executable
        self.platform, self.tier = executable.platform, executable.tier

    @property
    def feeds(self) -> Feeds:
        """The other end of the whole program's transfers; see `Executable.feeds`."""
        return self._whole.feeds

    @cached_property
    def _transfers(self) -> HostTransfers | None:
        return self._whole._transfers

    def hlo(self, stage: str = "optimized") -> str:
        """Return the HLO text of the whole program."""
        return self._whole.hlo(stage)

    @property
    def c_source(self) -> str:
        """The generated C code of the whole program."""
        return self._whole.c_source

    @property
    def memory(self) -> dict[str, int]:
        """The bytes by use of the whole program."""
        return self._whole.memory

    @property
    def cost(self) -> dict[str, float]:
        """The estimated cost of a call."""
        return self._whole.cost

    def profile(self, *, reset: bool = False) -> Profile:
        """Return the time of each kernel; see `Executable.profile`."""
        return self._whole.profile(reset=reset)

    def explain(self) -> str:
        """Describe the kernels of the whole program; see `Executable.explain`."""
        return self._whole.explain()

    def explanation(self) -> Explanation:
        """Return the kernels and refusals of the whole program; see `Executable.explanation`."""
        return self._whole.explanation()


class BoundExecutable(WrappedExecutable):
    """An executable with private copies of some arguments."""

    def __init__(self, executable: Executable, fixed: Mapping[int, Any]) -> None:
        super().__init__(executable)
        self._fixed = dict(fixed)
        self._free = [k for k in range(len(executable.inputs)) if k not in fixed]
        self.outputs = executable.outputs
        self.inputs = tuple(executable.inputs[k] for k in self._free)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the remaining arguments."""
        return tuple(self._whole.names[k] for k in self._free)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run on the remaining arguments."""
        if len(args) != len(self._free):
            raise InvalidArgumentError(f"the program takes {count(tuple(self._free))}, got {len(args)}")
        values = {**self._fixed, **dict(zip(self._free, args, strict=True))}
        return self._whole(*(values[k] for k in range(len(values))), out=out)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._whole, self._fixed)
