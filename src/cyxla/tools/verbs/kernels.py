"""``cyxla kernels``: the registered kernels of ops."""

from __future__ import annotations

import argparse

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", nargs="?", help="name of an op; all ops by default")
    parser.add_argument("--device", metavar="TYPE", help="only kernels for a type of device, such as CPU")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    registry = KernelRegistry.global_()
    registry.load()
    XlaOpRegistry.global_().register_compilation_kernels(registry)
    if args.name:
        OpRegistry.global_().look_up(args.name)  # raises for an unknown name, with similar names as a hint
        kernels = registry.get_registered_kernels_for_op(args.name)
    else:
        kernels = registry.get_all_registered_kernels()
    for kernel_def in sorted(kernels, key=lambda k: k.device_type.endswith("_JIT")):  # compiling kernels last
        if args.device in (None, kernel_def.device_type):
            print(f"{kernel_def.op}: {kernel_def}")
    return 0
