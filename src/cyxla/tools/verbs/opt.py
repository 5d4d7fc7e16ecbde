"""``cyxla opt``: parse a program, verify it, run passes, print it."""

from __future__ import annotations

import argparse
from pathlib import Path

from cyxla.tools.programs import add_specs, read_module
from cyxla.xla.client import platforms as _platforms
from cyxla.xla.service import CompileOptions, compiler_for

_ = _platforms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="HLO text, a .pb proto, or - for standard input")
    add_specs(parser)
    parser.add_argument("--platform", help="run the passes of this platform")
    parser.add_argument("--fingerprint", action="store_true", help="print the fingerprint only")
    parser.add_argument("--output", metavar="FILE", help="output file; the suffix .pb selects a proto")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    module = read_module(args.file, args.spec)
    module.verify()
    if args.platform:
        module = compiler_for(args.platform).run_hlo_passes(module, CompileOptions.of({}))
        module.verify()
    if args.fingerprint:
        print(module.fingerprint())
    elif args.output and args.output.endswith(".pb"):
        Path(args.output).write_bytes(module.to_proto())
    elif args.output:
        Path(args.output).write_text(module.to_text())
    else:
        print(module.to_text(), end="")
    return 0
