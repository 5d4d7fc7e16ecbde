"""Elements of a queue in its order: first in first out, by priority, or at random."""

from __future__ import annotations

import heapq
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, ClassVar, Protocol

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.kernels.lib.philox import Philox
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]
Element = tuple[Array, ...]
_MASK64 = (1 << 64) - 1
_BLOCKS = 16  # blocks of random words computed at a time


class Store(Protocol):
    """The elements of a queue.

    Attributes
    ----------
    reserve : int
        Number of elements that stay in an open queue.
    takes_whole : bool
        True if a batch is taken at once, not as its elements arrive.
    """

    reserve: int
    takes_whole: ClassVar[bool]

    def __len__(self) -> int:
        """Return the number of elements."""
        ...

    def add(self, element: Element) -> None:
        """Add an element."""
        ...

    def take(self) -> Element:
        """Remove and return the next element."""
        ...

    def restore(self, elements: Sequence[Element]) -> None:
        """Put back the elements that were taken last, in the order in which they were taken."""
        ...


class FifoStore:
    """Elements in the order of arrival."""

    takes_whole: ClassVar[bool] = False

    def __init__(self) -> None:
        self.reserve = 0
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def add(self, element: Element) -> None:
        """Add an element at the end."""
        self._elements.append(element)

    def take(self) -> Element:
        """Remove and return the first element."""
        return self._elements.popleft()

    def restore(self, elements: Sequence[Element]) -> None:
        """Put elements back at the front."""
        self._elements.extendleft(reversed(elements))


class PriorityStore:
    """Elements by their first component, the smallest first; equal ones in the order of arrival."""

    takes_whole: ClassVar[bool] = True

    def __init__(self) -> None:
        self.reserve = 0
        self._heap: list[tuple[int, int, Element]] = []
        self._arrivals = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: Element) -> None:
        """Add an element.

        Raises
        ------
        InvalidArgumentError
            The priority is not a scalar.
        """
        priority = element[0]
        if priority.ndim:
            raise InvalidArgumentError(
                f"Expected the priority element to be a scalar, but received shape: {TensorShape(priority.shape)}"
            )
        heapq.heappush(self._heap, (int(priority), next(self._arrivals), element))

    def take(self) -> Element:
        """Remove and return the element of the smallest priority."""
        return heapq.heappop(self._heap)[2]

    def restore(self, elements: Sequence[Element]) -> None:
        """Put elements back."""
        for element in elements:
            self.add(element)


class ShuffleStore:
    """Elements that are taken at random.

    Parameters
    ----------
    reserve : int
        Number of elements that stay in an open queue.
    seed, seed2 : int
        Seeds of the order; if both are zero, the order differs from queue to queue.
    """

    takes_whole: ClassVar[bool] = False

    def __init__(self, reserve: int, seed: int, seed2: int) -> None:
        self.reserve = reserve
        self._elements: list[Element] = []
        if not seed and not seed2:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._words = _words(Philox(seed & _MASK64, (seed2 & _MASK64) << 64))

    def __len__(self) -> int:
        return len(self._elements)

    def add(self, element: Element) -> None:
        """Add an element."""
        self._elements.append(element)

    def take(self) -> Element:
        """Remove and return an element; the last one takes its place."""
        elements = self._elements
        index = next(self._words) % len(elements)
        elements[index], elements[-1] = elements[-1], elements[index]
        return elements.pop()

    def restore(self, elements: Sequence[Element]) -> None:
        """Put elements back, the last one first."""
        self._elements.extend(reversed(elements))


def _words(generator: Philox) -> Iterator[int]:
    """Yield the words of a generator one by one."""
    while True:
        yield from generator.blocks(_BLOCKS).ravel().tolist()
        generator = generator.skip(_BLOCKS)
