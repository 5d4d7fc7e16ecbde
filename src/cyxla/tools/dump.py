"""``cyxla dump``: a program at one stage of its compilation."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from cyxla.tools.programs import read_module
from cyxla.xla.client import compile_program
from cyxla.xla.service import Executable

STAGES: dict[str, Callable[[Executable], str]] = {
    "input": lambda e: e.hlo("input"),
    "optimized": lambda e: e.hlo("optimized"),
    "plan": lambda e: e.explain(),
    "kernels": lambda e: json.dumps(e.explanation().as_dict(), indent=2),
    "c": lambda e: e.c_source,
    "memory": lambda e: "\n".join(f"{use}: {size} bytes" for use, size in e.memory.items()),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="HLO text, a .pb proto, or - for standard input")
    parser.add_argument("--stage", choices=STAGES, default="optimized", help="stage to print (default optimized)")
    parser.add_argument("--platform", default="cpu", help="platform to compile for (default cpu)")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    print(STAGES[args.stage](compile_program(read_module(args.file), platform=args.platform)).rstrip())
    return 0
