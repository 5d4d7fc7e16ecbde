"""Warning about functions that are compiled again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cyxla.errors import RecompileWarning
from cyxla.numpy.calls.lowering import Spec
from cyxla.numpy.calls.signatures import Call
from cyxla.numpy.tracing.trace import warn_user

WARN_AFTER: Final = 8  # number of compilations after which to warn


def warn_recompilation(name: str, calls: Sequence[Call], reason_of_sizes: str) -> None:
    """Warn about the argument that causes repeated compilation."""
    last = calls[-1]
    similar = [c for c in calls if c.binding.keywords == last.binding.keywords and c.names == last.names]
    changing = [
        (name_, [str(c.specs[k]) for c in similar])
        for k, name_ in enumerate(last.names)
        if len({c.specs[k] for c in similar}) > 1
    ]
    if not changing:
        reason, hint = "the structure of its arguments changes", "pass containers of one structure"
    else:
        name_, values = changing[0]
        shown_values = ", ".join(dict.fromkeys(values[-4:]))
        reason = f"argument {name_} changes: {shown_values}"
        hint = _recompilation_hint([c.specs[last.names.index(name_)] for c in similar], reason_of_sizes)
    warn_user(f"{name} has been compiled {WARN_AFTER} times, since {reason}; {hint}", RecompileWarning)


def _recompilation_hint(specs: Sequence[Any], reason_of_sizes: str) -> str:
    if not all(isinstance(s, Spec) for s in specs):
        return "leave it out of static=, and use it in arithmetic alone, if it may be a traced number"
    if len({s.kind for s in specs}) > 1:
        return "convert it to one dtype before the call"
    if reason_of_sizes:
        return f"pad it to a few sizes, since it cannot be compiled for any size: {reason_of_sizes}"
    return "pad it to a few sizes"
