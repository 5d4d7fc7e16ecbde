"""Branches on conditions that are known while tracing."""

from __future__ import annotations

from typing import Any


class KnownBranch:
    """Branch on a condition that is known while tracing."""

    def __init__(self, holds: bool) -> None:
        self._holds = holds
        self._state: tuple[Any, ...] = ()

    def first(self, state: tuple[Any, ...]) -> bool:
        """Return True if the first side runs."""
        self._state = state
        return self._holds

    def second(self) -> bool:
        """Return True if the second side runs."""
        return not self._holds

    @property
    def entry(self) -> tuple[Any, ...]:
        """Values of the variables before the branch."""
        return self._state

    def end(self, state: tuple[Any, ...]) -> None:
        """Take the values of the variables after a side."""
        self._state = state

    @staticmethod
    def failed(error: Exception) -> bool:
        """Return False: an exception leaves the branch."""
        return False

    def merged(self) -> tuple[Any, ...]:
        """Return the values of the variables after the branch."""
        return self._state
