"""Options of a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from cyxla import config
from cyxla.errors import InvalidArgumentError
from cyxla.records import dataclass
from cyxla.xla.feeds import Feeds
from cyxla.xla.service.donation import check


@dataclass(frozen=True)
class CompileOptions:
    """Options of a compilation.

    Attributes
    ----------
    disabled_passes : tuple of str
        Names of passes to skip.
    custom_calls : mapping of str to callable
        Evaluators of custom-call targets, for this program only.
    cache : bool
        True to use the disk cache.
    seed : int
        Seed of the stateful random numbers of `rng`.
    max_trips : int or None
        Maximum trip count of a `while` on the interpreter, beyond which it raises `DeadlineExceededError`.
    profile : bool
        True to measure every call of a kernel for `Executable.profile`; otherwise the code contains no measurement.
    autotune : bool
        True to measure variants of heavy products and convolutions on this machine, and to use the fastest; the bits of
        results are the same. Only the cpu platform has variants; others ignore it.
    donate : tuple of int or str, or bool
        Parameters, by number or name, whose buffers a call may reuse for results of the same size; their contents are
        undefined afterwards. True donates the parameters of the module's own tables. See `donation`.
    in_place : tuple of (int, int)
        Parameters that are arrays, each with the number of the result array that may be computed in its memory. A
        platform may ignore it.
    live_results : tuple of (int, int, int)
        Results of which the caller reads a leading part alone: leaf of the result, dimension of it, and leaf that holds
        the number of elements to read along that dimension, or ~p if parameter p holds it. The others are undefined.
    sparse : bool
        True if most calls use few of the elements that arrays have room for: temporaries, and results of up to 16 MiB,
        then get small pages. The generated code is the same.
    feeds : Feeds
        The other end of the program's `infeed`, `outfeed`, `send` and `recv`; programs compiled with the same one
        share its queues and channels.
    """

    disabled_passes: tuple[str, ...] = ()
    custom_calls: Mapping[str, Any] = field(default_factory=dict)
    cache: bool = True
    seed: int = 0
    max_trips: int | None = None
    profile: bool = False
    autotune: bool = False
    donate: tuple[int | str, ...] | bool = ()
    in_place: tuple[tuple[int, int], ...] = ()
    live_results: tuple[tuple[int, int, int], ...] = ()
    sparse: bool = False
    feeds: Feeds = field(default_factory=Feeds, compare=False)

    @staticmethod
    def of(options: Mapping[str, Any]) -> CompileOptions:
        """Return options from keywords, with defaults from the environment.

        Raises
        ------
        InvalidArgumentError
            An option is unknown, or has a value of the wrong type.
        """
        known_fields = {f.name: f for f in fields(CompileOptions)}
        for name in options:
            if name not in known_fields:
                raise InvalidArgumentError(f"unknown option {name!r}", hint=config.nearest(name, known_fields))
        if isinstance(options.get("disabled_passes"), str):  # `in` would match substrings
            raise InvalidArgumentError("disabled_passes is a string", hint="give a tuple of names")
        if "feeds" in options and not isinstance(options["feeds"], Feeds):
            raise InvalidArgumentError(f"feeds is a {type(options['feeds']).__name__}", hint="give a cyxla.Feeds()")
        if "donate" in options:
            check(options["donate"])
            options = {**options, "donate": _normalise_donation(options["donate"])}
        config.check_environment()
        base = {
            "disabled_passes": config.get("DISABLE_HLO_PASSES"),
            "cache": config.get("CACHE"),
            "autotune": config.get("AUTOTUNE"),
        }
        if not isinstance(options.get("autotune", False), bool):
            raise InvalidArgumentError(f"autotune is a {type(options['autotune']).__name__}", hint="give True or False")
        return CompileOptions(**{**base, **options})

    def key(self) -> str:
        """Return a text that is equal for options under which equal programs compile to equal code."""
        passes = ",".join(sorted(self.disabled_passes))
        tuned = " autotune" if self.autotune else ""
        donated = f" donate-{self.donate}" if self.donate else ""
        donated += f" in-place-{self.in_place}" if self.in_place else ""
        live = f" live-{self.live_results}" if self.live_results else ""
        return f"passes-{passes} seed-{self.seed}{' profile' if self.profile else ''}{tuned}{donated}{live}"


def _normalise_donation(donate: Any) -> tuple[int | str, ...] | bool:
    """Normalise the type of the sequence and of its integers."""
    return donate if isinstance(donate, bool) else tuple([k if isinstance(k, str) else k.__index__() for k in donate])
