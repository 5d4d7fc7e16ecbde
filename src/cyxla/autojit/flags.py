"""What ``TF_XLA_FLAGS`` says: the names, types and defaults of TensorFlow's flags for clustering and compiling.

The variable is read when a flag is first needed: ``TF_XLA_FLAGS="--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock

VARIABLE = "TF_XLA_FLAGS"
NO_LIMIT = 2**31 - 1
_LOCK = new_lock()


@dataclass(frozen=True)
class Flags:
    """All flags; a field is named as the flag.

    Attributes
    ----------
    tf_xla_auto_jit : int
        Level of clustering; 0 leaves it to the session, -1 turns it off.
    tf_xla_cpu_global_jit : bool
        Cluster on CPUs too, not only what asks for it.
    tf_xla_min_cluster_size, tf_xla_max_cluster_size : int
        Nodes in a cluster, those that compute nothing not counted.
    tf_xla_ops_to_cluster, tf_xla_cluster_exclude_ops : tuple of str
        Ops (or groups of them) that may be clustered, and that may not.
    tf_xla_clustering_fuel : int
        How many nodes may be marked: for bisecting.
    tf_xla_clustering_debug : bool
        Write graphs before and after into `tf_dump_graph_prefix`.
    tf_xla_enable_lazy_compilation : bool
        Keep the clusters' functions to fall back on.
    tf_xla_always_defer_compilation : bool
        Never compile what may be run otherwise.
    tf_xla_async_compilation : bool
        Compile in the background, and run the functions meanwhile.
    tf_xla_enable_xla_devices : bool
        Sessions have devices on which everything is compiled.
    tf_xla_compile_on_demand : bool
        On such devices nothing is clustered, each op is compiled by itself.
    """

    tf_xla_auto_jit: int = 0
    tf_xla_cpu_global_jit: bool = False
    tf_xla_min_cluster_size: int = 4
    tf_xla_max_cluster_size: int = NO_LIMIT
    tf_xla_ops_to_cluster: tuple[str, ...] = ()
    tf_xla_cluster_exclude_ops: tuple[str, ...] = ()
    tf_xla_clustering_fuel: int = NO_LIMIT
    tf_xla_clustering_debug: bool = False
    tf_dump_graph_prefix: str = ""
    tf_xla_disable_deadness_safety_checks_for_debugging: bool = False
    tf_xla_disable_resource_variable_safety_checks_for_debugging: bool = False
    tf_xla_deterministic_cluster_names: bool = False
    tf_xla_enable_lazy_compilation: bool = True
    tf_xla_always_defer_compilation: bool = False
    tf_xla_async_compilation: bool = False
    tf_xla_print_cluster_outputs: bool = False
    tf_xla_check_cluster_input_numerics: bool = False
    tf_xla_check_cluster_output_numerics: bool = False
    tf_xla_disable_constant_folding: bool = False
    tf_xla_enable_xla_devices: bool = False
    tf_xla_compile_on_demand: bool = False
    tf_xla_persistent_cache_directory: str = ""
    tf_xla_persistent_cache_prefix: str = "xla_compile_cache"
    tf_xla_persistent_cache_device_types: tuple[str, ...] = ()
    tf_xla_persistent_cache_read_only: bool = False
    tf_xla_disable_strict_signature_checks: bool = False
    tf_introduce_floating_point_jitter_to_tensors: tuple[str, ...] = ()
    tf_introduce_floating_point_jitter_amount: float = 1e-5


def _switch(text: str) -> bool:
    try:
        return {"": True, "1": True, "true": True, "0": False, "false": False}[text.lower()]
    except KeyError:
        raise ValueError("want true or false") from None


def _level(text: str) -> int:
    if text.startswith("single-gpu(") and text.endswith(")"):
        return int(text[len("single-gpu(") : -1])
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": _switch, "int": int, "float": float, "str": str, "tuple[str, ...]": _names,
}  # fmt: skip
_FIELDS = {field.name: _PARSERS[str(field.type)] for field in fields(Flags)} | {"tf_xla_auto_jit": _level}


def parse(text: str, base: Flags | None = None) -> Flags:
    """Read flags from a text.

    Parameters
    ----------
    text : str
        ``--name=value`` or, to switch on, ``--name``, with blanks between.
    base : Flags, optional
        What holds where the text says nothing; the defaults.

    Raises
    ------
    InvalidArgumentError
        There is no such flag, or its value is of another kind.
    """
    values: dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        key = name.lstrip("-")
        if not word.startswith("-") or key not in _FIELDS:
            near = get_close_matches(key, _FIELDS, 1)
            raise InvalidArgumentError(
                f"unknown flag '{name}' in {VARIABLE}", hint=f"did you mean --{near[0]}?" if near else "take it out"
            )
        try:
            values[key] = _FIELDS[key](value)
        except ValueError as error:
            raise InvalidArgumentError(f"{VARIABLE}: --{key}={value!r} is not possible: {error}") from None
    return replace(base or Flags(), **values)


_current: Flags | None = None


def current() -> Flags:
    """The flags that hold now.

    Raises
    ------
    InvalidArgumentError
        ``TF_XLA_FLAGS`` has a flag that does not exist.
    """
    global _current
    found = _current
    if found is None:
        with _LOCK:
            if _current is None:
                _current = parse(os.environ.get(VARIABLE, ""))
            found = _current
    return found


@contextmanager
def flags(text: str = "", **values: Any) -> Iterator[Flags]:
    """Let other flags hold in a ``with`` statement: for tests, and for trying things out.

    Parameters
    ----------
    text : str
        As in ``TF_XLA_FLAGS``.
    **values
        Single flags.

    Examples
    --------
    >>> with flags("--tf_xla_auto_jit=2", tf_xla_min_cluster_size=1) as changed:
    ...     changed.tf_xla_auto_jit
    2
    """
    global _current
    before = current()
    with _LOCK:
        _current = replace(parse(text, before), **values)
    try:
        yield _current
    finally:
        with _LOCK:
            _current = before


def described() -> Mapping[str, Any]:
    """All flags with their values."""
    return {field.name: getattr(current(), field.name) for field in fields(Flags)}
