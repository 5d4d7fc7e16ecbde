"""``cyxla passes``: the passes over graphs."""

from __future__ import annotations

import argparse

import cyxla.autojit.jit_session  # noqa: F401 - registers the passes that compile
from cyxla.core.runtime.optimization_registry import OptimizationPassRegistry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb: none."""


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    for entry in OptimizationPassRegistry.global_().passes():
        print(f"{entry.grouping.name:22s} {entry.phase:4d}  {entry.name}")
    return 0
