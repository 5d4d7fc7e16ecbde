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
    donate : tuple of int or str, or bool
        Parameters, by number or name, whose arrays a call may write: each becomes the memory of a result of its size,
        and its contents are no longer the caller's. True donates what the module's own tables say. See `donation`.
    """

    disabled_passes: tuple[str, ...] = ()
    custom_calls: Mapping[str, Any] = field(default_factory=dict)
    cache: bool = True
    seed: int = 0
    max_trips: int | None = None
    profile: bool = False
    donate: tuple[int | str, ...] | bool = ()

    @staticmethod
    def of(options: Mapping[str, Any]) -> CompileOptions:
        """Options from keywords, over what the environment says.

        Raises
        ------
        InvalidArgumentError
            There is no such option, or `disabled_passes` is one string, or `donate` is no tuple.
        """
        known = {f.name: f for f in fields(CompileOptions)}
        for name in options:
            if name not in known:
                raise InvalidArgumentError(f"unknown option {name!r}", hint=config.nearest(name, known))
        if isinstance(options.get("disabled_passes"), str):  # `in` would look for parts of it
            raise InvalidArgumentError("disabled_passes is a string", hint="give a tuple of names")
        if "donate" in options:
            from cyxla.xla.service.donation import check

            check(options["donate"])
            options = {**options, "donate": _tuple(options["donate"])}
        config.check_environment()
        base = {"disabled_passes": config.get("DISABLE_HLO_PASSES"), "cache": config.get("CACHE")}
        return CompileOptions(**{**base, **options})

    def key(self) -> str:
        """Text that is equal for options under which equal programs compile to equal code."""
        passes = ",".join(sorted(self.disabled_passes))
        donated = f" donate-{self.donate}" if self.donate else ""
        return f"passes-{passes} seed-{self.seed}{' profile' if self.profile else ''}{donated}"


def _tuple(donate: Any) -> tuple[int | str, ...] | bool:
    """In one form, whatever kind of sequence and of integers it came as."""
    return donate if isinstance(donate, bool) else tuple([k if isinstance(k, str) else k.__index__() for k in donate])
