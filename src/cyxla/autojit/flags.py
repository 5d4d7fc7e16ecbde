"""The flags of ``TF_XLA_FLAGS``: names, types and defaults of TensorFlow's flags for clustering and compiling.

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
    """The values of all flags; each field has the name of its flag.

    Attributes
    ----------
    tf_xla_auto_jit : int
        Level of clustering; 0 leaves it to the session, -1 turns it off.
    tf_xla_cpu_global_jit : bool
        Cluster all nodes on CPUs, not only those marked for compilation.
    tf_xla_min_cluster_size, tf_xla_max_cluster_size : int
        Limits for the number of nodes in a cluster; constants and identities do not count.
    tf_xla_ops_to_cluster, tf_xla_cluster_exclude_ops : tuple of str
        Ops (or groups of ops) to which clustering is limited, and ops that are excluded from it.
    tf_xla_clustering_fuel : int
        Maximum number of nodes that may be marked, for bisecting.
    tf_xla_clustering_debug : bool
        Dump graphs before and after clustering to the folder `tf_dump_graph_prefix`.
    tf_xla_enable_lazy_compilation : bool
        Keep each cluster's function as a fallback.
    tf_xla_always_defer_compilation : bool
        Always run the fallback of a cluster that has one.
    tf_xla_async_compilation : bool
        Compile in the background, and run the fallback meanwhile.
    tf_xla_enable_xla_devices : bool
        Create the devices ``XLA_CPU`` and ``XLA_INTERPRETER``, on which all nodes are compiled.
    tf_xla_compile_on_demand : bool
        Compile each op on such devices by itself instead of clustering.
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


def _parse_bool(text: str) -> bool:
    try:
        return {"": True, "1": True, "true": True, "0": False, "false": False}[text.lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def _parse_level(text: str) -> int:
    if text.startswith("single-gpu(") and text.endswith(")"):
        return int(text[len("single-gpu(") : -1])
    return int(text)


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": _parse_bool, "int": int, "float": float, "str": str, "tuple[str, ...]": _parse_names,
}  # fmt: skip
_PARSER_OF_FLAG = {field.name: _PARSERS[str(field.type)] for field in fields(Flags)} | {"tf_xla_auto_jit": _parse_level}


def parse(text: str, base: Flags | None = None) -> Flags:
    """Read flags from a text.

    Parameters
    ----------
    text : str
        ``--name=value`` or, to switch on, ``--name``, with blanks between.
    base : Flags, optional
        Values of the flags that the text does not set; the defaults if not given.

    Raises
    ------
    InvalidArgumentError
        A flag is unknown, or its value has the wrong type.
    """
    values: dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        key = name.lstrip("-")
        if not word.startswith("-") or key not in _PARSER_OF_FLAG:
            close_matches = get_close_matches(key, _PARSER_OF_FLAG, 1)
            raise InvalidArgumentError(
                f"unknown flag '{name}' in {VARIABLE}",
                hint=f"did you mean --{close_matches[0]}?" if close_matches else "remove it",
            )
        try:
            values[key] = _PARSER_OF_FLAG[key](value)
        except ValueError as error:
            raise InvalidArgumentError(f"{VARIABLE}: --{key}={value!r} is invalid: {error}") from None
    return replace(base or Flags(), **values)


_current: Flags | None = None


def current() -> Flags:
    """Return the flags in force.

    Raises
    ------
    InvalidArgumentError
        ``TF_XLA_FLAGS`` holds an unknown flag or a value of the wrong type.
    """
    global _current
    flags_in_force = _current
    if flags_in_force is None:
        with _LOCK:
            if _current is None:
                _current = parse(os.environ.get(VARIABLE, ""))
            flags_in_force = _current
    return flags_in_force


@contextmanager
def flags(text: str = "", **values: Any) -> Iterator[Flags]:
    """Override flags in a ``with`` statement, for tests and experiments.

    Parameters
    ----------
    text : str
        Flags in the syntax of ``TF_XLA_FLAGS``.
    **values
        Values of single flags by name.

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
    """Return all flags with their values."""
    return {field.name: getattr(current(), field.name) for field in fields(Flags)}
