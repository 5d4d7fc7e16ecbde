"""The ``cyxla`` command, with the table of its verbs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from cyxla.errors import OpError

VERBS = {
    "run": "run a program or a graph on NumPy arrays",
    "bisect": "find the pass or the instruction that makes results wrong",
    "opt": "parse a program, verify it, run passes, print it",
    "aot": "compile a function, a program or a graph ahead of time into a C library or a wheel",
    "tfcompile": "compile a graph ahead of time, with the flags of TensorFlow's tfcompile",
    "convert": "write a program or graph in another form: HLO text or proto, StableHLO, GraphDef",
    "functions": "list the functions of NumPy that cyxla.jit compiles",
    "dump": "print a program at one stage of its compilation",
    "opcodes": "list the opcodes of HLO, or show one",
    "ops": "list the ops of graphs",
    "op": "show the declaration of an op",
    "kernels": "list the kernels, or those of an op",
    "select-ops": "list the ops and kernels that graphs need",
    "trace-lowering": "show the HLO that the XLA kernel of each node of a graph, or of one op, emits",
    "xla-ops": "list the ops that compile, count them, or name those that do not",
    "devices": "list the devices that sessions have",
    "passes": "list the passes that rewrite graphs, and when they run",
    "settings": "list the environment variables, or show one",
    "cache": "look at the disk cache, clear it, check it",
    "doctor": "say what cyxla found on this machine, and try it out",
}
USAGE_ERROR, PROGRAM_ERROR = 2, 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    top = argparse.ArgumentParser(prog="cyxla", description="Run HLO programs and TensorFlow graphs on CPUs.")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, summary in VERBS.items():
        _module(name).add_arguments(verbs.add_parser(name, help=summary, description=summary))
    return top


def _module(verb: str) -> Any:
    return import_module(f"cyxla.tools.verbs.{verb.replace('-', '_')}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit status: 0, 1 for an error of the program, 2 for a usage error."""
    args = parser().parse_args(argv)
    try:
        status: int = _module(args.verb).main(args)
        sys.stdout.flush()
    except OpError as error:
        print(f"cyxla {args.verb}: {error.code}: {error}", file=sys.stderr)
        return PROGRAM_ERROR
    except BrokenPipeError:  # the reader closed the pipe: discard the rest of the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"cyxla {args.verb}: {error}", file=sys.stderr)
        return PROGRAM_ERROR
    return status


if __name__ == "__main__":
    sys.exit(main())
