"""``cyxla ops``: the declared ops."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import ArgDef
from cyxla.core.framework.declarations.op_def_proto import op_list_to_text
from cyxla.core.framework.declarations.selective_registration import required_ops
from cyxla.core.graph.graph_constructor import read_graph_def


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("pattern", nargs="?", default="*", help="show names of this pattern, such as 'Mat*'")
    parser.add_argument("--internal", action="store_true", help="include ops whose names begin with _")
    parser.add_argument(
        "--selected", metavar="GRAPH", help="only the ops that a graph needs: a .pb or .pbtxt file, or a SavedModel"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--count", action="store_true", help="only print the number of ops")
    form.add_argument("--pbtxt", action="store_true", help="print an OpList message in text format, by name")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    registry = OpRegistry.global_()
    needed = required_ops(read_graph_def(args.selected)) if args.selected else None
    for name in needed or ():
        registry.look_up(name)  # raises for an op that is not declared
    op_defs = sorted(
        (
            op_def
            for op_def in registry.get_registered_ops()
            if fnmatchcase(op_def.name, args.pattern)
            and (needed is None or op_def.name in needed)
            and (args.internal or needed is not None or not op_def.name.startswith("_"))
        ),
        key=lambda row: row.name,
    )
    if args.count:
        print(len(op_defs))
    elif args.pbtxt:
        print(op_list_to_text(op_defs), end="")
    else:
        for op_def in op_defs:
            print(f"{op_def.name:40s} {_arguments(op_def.input_arg)} -> {_arguments(op_def.output_arg)}")
    return 0


def _arguments(args: tuple[ArgDef, ...]) -> str:
    return f"({', '.join(f'{arg.name}: {arg.type_text}' for arg in args)})"
