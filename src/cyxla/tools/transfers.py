"""Values of infeeds from files, and values of outfeeds, of programs that the command line runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cyxla.errors import DeadlineExceededError, InvalidArgumentError
from cyxla.tools.programs import read_arrays, reinterpret
from cyxla.types import Shape
from cyxla.xla.feeds import Feeds
from cyxla.xla.hlo import HloModule
from cyxla.xla.service.host_transfers import HostTransfers


class Transfers:
    """The host's side of a program: it has no other thread, so that nothing is waited for.

    Parameters
    ----------
    module : HloModule
        Program.
    files : sequence of str
        Names of .npy and .npz files with the values that the program takes, in order.

    Raises
    ------
    InvalidArgumentError
        The program takes no such value.
    """

    def __init__(self, module: HloModule, files: Sequence[str]) -> None:
        self.feeds = Feeds(timeout=0)
        self._shapes = HostTransfers.of(module)
        values = [value for path in files for value in self._read(path)]
        self._values = [self._shapes.infeed_value(value) for value in values]

    def options(self) -> dict[str, Any]:
        """Return the options of compilation; none for a program without infeeds and outfeeds."""
        return {"feeds": self.feeds} if any(self._shapes) else {}

    def queue_infeeds(self) -> None:
        """Empty the queues, and fill the infeed queue for a run."""
        self.feeds.clear()
        for value in self._values:
            self.feeds.infeed(value)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Tell by which option values are given, if the program takes more than there are."""
        try:
            yield
        except DeadlineExceededError as error:
            if "infeed" in error.message:
                message = f"the program takes more than {len(self._values)} values from the infeed queue"
                raise DeadlineExceededError(message, hint="--infeed FILE gives the next one") from None
            raise

    def take_outfeeds(self) -> dict[str, Any]:
        """Return the arrays of the last run's outfeeds by name: ``outfeed 0``, or ``outfeed 0.1`` of a tuple."""
        values = [self.feeds.outfeed() for _ in range(self.feeds.num_outfeeds)]
        return {name: leaf for k, value in enumerate(values) for name, leaf in _leaves(value, f"outfeed {k}")}

    def _read(self, path: str) -> list[Any]:
        """Return the values of a file: its arrays, or the tuple of them if the program takes tuples."""
        arrays, shapes = read_arrays(path), self._shapes.infeeds
        if not any(shape.is_tuple for shape in shapes):
            return [reinterpret(a, shapes[0]) if len(shapes) == 1 else a for a in arrays]
        for shape in shapes:
            if len(shape.leaves()) == len(arrays):
                leaves = [reinterpret(a, leaf) for a, leaf in zip(arrays, shape.leaves(), strict=True)]
                if all(a.shape == leaf.dims for a, leaf in zip(leaves, shape.leaves(), strict=True)):
                    return [_nested(shape, iter(leaves))]
        found, wanted = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays), ", ".join(map(str, shapes))
        raise InvalidArgumentError(f"{path} holds {found}, but the program takes {wanted} from the infeed queue")


def _nested(shape: Shape, arrays: Iterator[Any]) -> Any:
    """Return arrays as the nested tuple of a shape."""
    return tuple([_nested(element, arrays) for element in shape.elements]) if shape.is_tuple else next(arrays)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            yield from _leaves(part, f"{name}.{k}")
    else:
        yield name, value
