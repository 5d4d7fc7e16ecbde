"""``cyxla xla-ops``: the ops with an XLA kernel."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.xla_op_registry import XlaOpRegistration, XlaOpRegistry

_FLAGS = {
    "compilation_only": "only inside of compiled regions",
    "allow_resource_types": "resources",
    "allow_variant_types": "variants",
    "allow_string_type": "strings",
    "is_metadata_op": "reads shapes and types only",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", nargs="?", help="name of an op: show its XLA kernels and their types on every backend")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--count", action="store_true", help="only print the number of ops with an XLA kernel")
    choice.add_argument("--missing", action="store_true", help="list the ops that have a CPU kernel but no XLA kernel")
    choice.add_argument("--markdown", action="store_true", help="print the whole table as a page")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    registry = XlaOpRegistry.global_()
    ops = registry.get_all_registered_ops()
    if args.count:
        print(len(ops))
    elif args.missing:
        print(*missing(ops), sep="\n")
    elif args.markdown:
        print(markdown(registry, ops), end="")
    elif args.name:
        OpRegistry.global_().look_up(args.name)  # raises for an unknown name, with similar names as a hint
        print(*describe(registry, args.name), sep="\n")
    else:
        for op in ops:
            for row in registry.registrations(op):
                print(f"{op:40s} {'; '.join(facts(row))}".rstrip())
    return 0


def missing(ops: Sequence[str]) -> list[str]:
    """Return the ops that have a CPU kernel but no XLA kernel."""
    eager = {k.op for k in KernelRegistry.global_().get_all_registered_kernels() if k.device_type == "CPU"}
    return sorted(eager - set(ops))


def facts(row: XlaOpRegistration) -> list[str]:
    """Return the properties of a registration as phrases."""
    phrases = [f"label {row.label}"] if row.label else []
    phrases += [f"for {', '.join(row.devices)}"] if row.devices else []
    phrases += [f"{attr} in {text(types)}" for attr, types in row.constraints.items()]
    phrases += [f"constant: {', '.join(row.compile_time_constant_inputs)}"] if row.compile_time_constant_inputs else []
    return phrases + [words for flag, words in _FLAGS.items() if getattr(row, flag)]


def describe(registry: XlaOpRegistry, op: str) -> list[str]:
    """Return lines for the registrations of an op, and for its kernels on each backend."""
    lines = [f"{op}: {'; '.join(facts(row)) or 'every type of the op'}" for row in registry.registrations(op)]
    for backend in registry.backend_names():
        for kernel in registry.device_kernels(backend):
            if kernel.op == op:
                types = "; ".join(f"{attr} in {text(allowed)}" for attr, allowed in kernel.constraints.items())
                lines.append(f"  {backend}: {types}".rstrip())
    return lines or [f"{op} does not compile"]


def markdown(registry: XlaOpRegistry, ops: Sequence[str]) -> str:
    """Return the table of the ops that compile as a page."""
    lines = [
        "# Ops that compile", "", f"Written by `cyxla xla-ops --markdown`: {len(ops)} ops.", "",
        "| op | constant inputs | types | notes |", "|---|---|---|---|",
    ]  # fmt: skip
    for op in ops:
        for row in registry.registrations(op):
            types = "; ".join(f"{attr}: {text(allowed)}" for attr, allowed in row.constraints.items())
            notes = [words for flag, words in _FLAGS.items() if getattr(row, flag)]
            notes += [f"for {', '.join(row.devices)}"] if row.devices else []
            cells = (op, ", ".join(row.compile_time_constant_inputs), types, ", ".join(notes))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def text(types: Sequence[DataType]) -> str:
    """Return the names of types."""
    return " ".join(t.text for t in types)
