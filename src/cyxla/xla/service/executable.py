"""A compiled program, whatever compiled it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cyxla._native.arguments import count
from cyxla.errors import InvalidArgumentError, UnimplementedError

if TYPE_CHECKING:
    from cyxla.types import Shape
    from cyxla.xla.service.profile import Profile


class RunOptions(NamedTuple):
    """How to run a compiled program.

    Attributes
    ----------
    out : array or nested tuple of arrays, optional
        Where to put the results.
    """

    out: Any = None


class Executable(ABC):
    """A program to call with NumPy arrays; safe to call from several threads at once.

    Attributes
    ----------
    platform : str
        Which backend made it.
    inputs : tuple of Shape
        Shapes of the arguments.
    outputs : Shape
        Shape of the result: an array, or a tuple for a tuple root.
    tier : str
        What runs it: ``"interpreter"``, ``"kernels"`` (prebuilt functions alone), or ``"native"`` code of its own.
    """

    platform: str
    tier: str = "interpreter"
    inputs: tuple[Shape, ...]
    outputs: Shape

    @abstractmethod
    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run.

        Parameters
        ----------
        *args : array_like
            One for each of `inputs`, of that shape and element type; a tuple for a tuple-shaped parameter. Python
            numbers and lists of them take on the declared type.
        out : numpy.ndarray or nested tuple of them, optional
            Arrays to write the results to.

        Returns
        -------
        numpy.ndarray or nested tuple of them
            As `outputs` says.

        Raises
        ------
        InvalidArgumentError
            An argument does not fit; the message names it, what came and what is wanted.
        """

    def execute_on_stream(self, options: RunOptions, arguments: Sequence[Any]) -> Any:
        """Run on given arguments, to the end: XLA's name for a call."""
        return self(*arguments, out=options.out)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments in the program; empty where the platform does not tell."""
        return ("",) * len(self.inputs)

    def bind(self, arguments: Mapping[int | str, Any]) -> Executable:
        """Fix some arguments, such as weights.

        Their values are those of this moment: arrays are copied, and later changes of them are not seen. Fixing more
        arguments of the result is fixing all of them.

        Parameters
        ----------
        arguments : mapping of int or str to array
            By argument number, or by name in the program; a tuple for a tuple-shaped parameter.

        Returns
        -------
        Executable
            Takes the remaining arguments, in order.

        Raises
        ------
        InvalidArgumentError
            There is no such argument, or it does not fit; the message names it.
        """
        from cyxla.xla.service.bound import checked, own

        fixed = checked(arguments, self.names, self.inputs)
        return BoundExecutable(self, {k: own(v) for k, v in fixed.items()}) if fixed else self

    @abstractmethod
    def hlo(self, stage: str = "optimized") -> str:
        """HLO text of the program: ``"input"`` as given, ``"optimized"`` as it runs."""

    @property
    def c_source(self) -> str:
        """The generated C."""
        raise UnimplementedError(f"platform {self.platform} generates no C")

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by use: ``arguments``, ``results``; ``temporaries``, ``constants`` where the platform plans them."""
        sizes = {"arguments": self.inputs, "results": (self.outputs,)}
        return {k: sum(leaf.nbytes for s in shapes for leaf in s.leaves()) for k, shapes in sizes.items()}

    @property
    def cost(self) -> dict[str, float]:
        """Estimated cost of a call."""
        return {}

    def profile(self, *, reset: bool = False) -> Profile:
        """What each kernel took, of a program compiled with ``profile=True``.

        Parameters
        ----------
        reset : bool
            Begin anew afterwards.

        Raises
        ------
        InvalidArgumentError
            The program was compiled without it.
        UnimplementedError
            The platform has no kernels to measure.
        """
        raise UnimplementedError(f"platform {self.platform} has no kernels to measure")

    @abstractmethod
    def explain(self) -> str:
        """For people: what runs, and why it was not joined with its neighbours."""


class WrappedExecutable(Executable):
    """An executable around another, which answers all questions about the program.

    Parameters
    ----------
    whole : Executable
        The other.
    """

    def __init__(self, whole: Executable) -> None:
        self._whole = whole
        self.platform, self.tier = whole.platform, whole.tier

    def hlo(self, stage: str = "optimized") -> str:
        """HLO text of the whole program."""
        return self._whole.hlo(stage)

    @property
    def c_source(self) -> str:
        """The generated C of the whole program."""
        return self._whole.c_source

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by use of the whole program."""
        return self._whole.memory

    @property
    def cost(self) -> dict[str, float]:
        """Estimated cost of a call."""
        return self._whole.cost

    def profile(self, *, reset: bool = False) -> Profile:
        """What each kernel took; see `Executable.profile`."""
        return self._whole.profile(reset=reset)

    def explain(self) -> str:
        """What runs."""
        return self._whole.explain()


class BoundExecutable(WrappedExecutable):
    """An executable with some arguments fixed, which nobody else may change."""

    def __init__(self, whole: Executable, fixed: Mapping[int, Any]) -> None:
        super().__init__(whole)
        self._fixed = dict(fixed)
        self._free = [k for k in range(len(whole.inputs)) if k not in fixed]
        self.outputs = whole.outputs
        self.inputs = tuple(whole.inputs[k] for k in self._free)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments that are left."""
        return tuple(self._whole.names[k] for k in self._free)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run on the remaining arguments."""
        if len(args) != len(self._free):
            raise InvalidArgumentError(f"the program takes {count(tuple(self._free))}, got {len(args)}")
        given = {**self._fixed, **dict(zip(self._free, args, strict=True))}
        return self._whole(*(given[k] for k in range(len(given))), out=out)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._whole, self._fixed)
