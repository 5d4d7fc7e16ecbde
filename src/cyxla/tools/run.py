"""``cyxla run``: execution of a program or a graph on arrays."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from cyxla.tools import run_graph
from cyxla.tools.compare import difference, flatten
from cyxla.tools.programs import read_inputs, read_module
from cyxla.tools.timing import best_of
from cyxla.xla.client import compile_program
from cyxla.xla.service.profile import Profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="HLO text, a .pb proto, a GraphDef (.pb, .pbtxt), or - for standard input")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help=".npy or .npz file with arguments, in order; the remaining ones are random",
    )
    parser.add_argument(
        "--feed",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="input of a graph: an .npy file or a value like [1, 2]; other placeholders get random numbers",
    )
    parser.add_argument(
        "--fetch",
        action="append",
        default=[],
        metavar="NAME",
        help="tensor (node:0) or node of a graph to compute (default: all unused outputs)",
    )
    parser.add_argument("--platform", default="cpu", help="platform to run on (default cpu)")
    parser.add_argument("--check", metavar="PLATFORM", help="also run on another platform and compare")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="number of timed calls; the best is printed")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random arguments")
    parser.add_argument("--output", metavar="FILE", help="write the results to an .npz file")
    parser.add_argument("--profile", action="store_true", help="print the time of each kernel")
    parser.add_argument("--trace", metavar="FILE", help="write the calls of kernels for Chrome's trace viewer")
    parser.add_argument(
        "--allow-file-access", action="store_true", help="allow a graph to access files: only for trusted graphs"
    )
    parser.add_argument("--quiet", action="store_true", help="do not print the results")


def main(args: argparse.Namespace) -> int:
    """Run the verb; the status is 1 if the check fails."""
    if run_graph.is_graph(args):
        return run_graph.main(args)
    module = read_module(args.file)
    started = time.perf_counter()
    measured = args.profile or args.trace is not None
    executable = compile_program(module, platform=args.platform, profile=measured)
    built = time.perf_counter() - started
    inputs = read_inputs(args.input, executable.inputs, args.seed)
    results, seconds = best_of(lambda: executable(*inputs), args.repeat)
    flat = flatten(results)
    if not args.quiet:
        show(flat)
    if args.output:
        arrays: dict[str, Any] = {f"arr_{k}": a for k, a in enumerate(flat) if isinstance(a, np.ndarray)}
        np.savez(args.output, **arrays)
    print(f"{args.platform}: compiled in {built * 1e3:.1f} ms, ran in {seconds * 1e6:.1f} us")
    if measured:
        report(executable.profile(), args)
    return check(module, inputs, flat, args) if args.check else 0


def report(profile: Profile, args: argparse.Namespace) -> None:
    """Print the profile and write the trace, as the options ask."""
    if args.profile:
        print(profile)
    if args.trace is not None:
        profile.save_trace(args.trace)


def check(module: Any, inputs: list[Any], results: list[Any], args: argparse.Namespace) -> int:
    """Compare the results with those of another platform; return 1 if they differ."""
    other = compile_program(module, platform=args.check)
    expected, seconds = best_of(lambda: other(*inputs), 1)
    print(f"{args.check}: ran in {seconds * 1e6:.1f} us")
    worst = [
        difference(actual, expected_array) for actual, expected_array in zip(results, flatten(expected), strict=True)
    ]
    bad = [(k, d) for k, d in enumerate(worst) if d.problem]
    for k, d in bad:
        print(f"result {k} differs: {d.problem}")
    print(
        "results differ"
        if bad
        else f"results agree: largest difference {max((d.relative for d in worst), default=0.0):.2g} of the scale"
    )
    return 1 if bad else 0


def show(results: list[Any]) -> None:
    """Print results, long ones abbreviated."""
    with np.printoptions(threshold=20, edgeitems=3, precision=6, suppress=True):
        for k, array in enumerate(results):
            kind = f"{array.dtype}{list(array.shape)}\n" if isinstance(array, np.ndarray) else ""
            print(f"result {k}: {kind}{array}")
