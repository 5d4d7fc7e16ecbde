"""Options of a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from cyxla import config
from cyxla.errors import InvalidArgumentError


@dataclass(frozen=True)
class CompileOptions:
    """How to compile.

    Attributes
    ----------
    disabled_passes : tuple of str
        Passes to leave out.
    custom_calls : mapping of str to callable
        Evaluators of custom-call targets, for this program alone.
    cache : bool
        Use the disk cache.
    seed : int
        Start of the stateful random numbers of `rng`.
    max_trips : int or None
        Most trips of a `while` on the interpreter; more raise `DeadlineExceededError`.
    profile : bool
        Measure every call of a kernel, for `Executable.profile`; without it the code holds nothing of the kind.
    """

    disabled_passes: tuple[str, ...] = ()
    custom_calls: Mapping[str, Any] = field(default_factory=dict)
    cache: bool = True
    seed: int = 0
    max_trips: int | None = None
    profile: bool = False

    @staticmethod
    def of(options: Mapping[str, Any]) -> CompileOptions:
        """Options from keywords, over what the environment says.

        Raises
        ------
        InvalidArgumentError
            There is no such option, or `disabled_passes` is one string.
        """
        known = {f.name: f for f in fields(CompileOptions)}
        for name in options:
            if name not in known:
                raise InvalidArgumentError(f"unknown option {name!r}", hint=config.nearest(name, known))
        if isinstance(options.get("disabled_passes"), str):  # `in` would look for parts of it
            raise InvalidArgumentError("disabled_passes is a string", hint="give a tuple of names")
        config.check_environment()
        base = {"disabled_passes": config.get("DISABLE_HLO_PASSES"), "cache": config.get("CACHE")}
        return CompileOptions(**{**base, **options})

    def key(self) -> str:
        """Text that is equal for options under which equal programs compile to equal code."""
        passes = ",".join(sorted(self.disabled_passes))
        return f"passes-{passes} seed-{self.seed}{' profile' if self.profile else ''}"
