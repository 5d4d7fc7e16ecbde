"""``cyxla ops``: the declared ops."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import ArgDef


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("pattern", nargs="?", default="*", help="show names of this pattern, such as 'Mat*'")
    parser.add_argument("--internal", action="store_true", help="include ops whose names begin with _")
    parser.add_argument("--count", action="store_true", help="only print the number of ops")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    op_defs = [
        op_def
        for op_def in OpRegistry.global_().get_registered_ops()
        if fnmatchcase(op_def.name, args.pattern) and (args.internal or not op_def.name.startswith("_"))
    ]
    if args.count:
        print(len(op_defs))
        return 0
    for op_def in sorted(op_defs, key=lambda row: row.name):
        print(f"{op_def.name:40s} {_arguments(op_def.input_arg)} -> {_arguments(op_def.output_arg)}")
    return 0


def _arguments(args: tuple[ArgDef, ...]) -> str:
    return f"({', '.join(f'{arg.name}: {arg.type_text}' for arg in args)})"
