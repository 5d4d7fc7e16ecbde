"""``cyxla run``: execution of a program or a graph on arrays."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from cyxla.tools import run_graph
from cyxla.tools.compare import difference, flatten
from cyxla.tools.programs import add_specs, read_module_and_inputs
from cyxla.tools.timing import best_of
from cyxla.tools.transfers import Transfers
from cyxla.xla.client import compile_program
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import Executable
from cyxla.xla.service.profile import Profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "file", help="HLO or StableHLO text, a .pb proto, a GraphDef (.pb, .pbtxt), or - for standard input"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help=".npy or .npz file with arguments, in order; the remaining ones are random",
    )
    add_specs(parser)
    parser.add_argument(
        "--infeed",
        action="append",
        default=[],
        metavar="FILE",
        help=".npy or .npz file with the next values of the program's infeeds: each array, or one tuple of them",
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
    parser.add_argument("--output", metavar="FILE", help="write the results and outfeeds to an .npz file")
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
    module, inputs = read_module_and_inputs(args.file, args.spec, args.input, args.seed)
    transfers = Transfers(module, args.infeed)
    started = time.perf_counter()
    measured = args.profile or args.trace is not None
    executable = compile_program(module, platform=args.platform, profile=measured, **transfers.options())
    built = time.perf_counter() - started
    arrays, seconds = run(executable, inputs, transfers, args.repeat)
    if not args.quiet:
        show(arrays)
    if args.output:
        named: dict[str, Any] = {_file_name(name): a for name, a in arrays.items() if isinstance(a, np.ndarray)}
        np.savez(args.output, **named)
    if transfers.feeds.num_infeeds:
        print(f"{transfers.feeds.num_infeeds} values were left in the infeed queue")
    print(f"{args.platform}: compiled in {built * 1e3:.1f} ms, ran in {seconds * 1e6:.1f} us")
    if measured:
        report(executable.profile(), args)
    return check(module, inputs, arrays, args) if args.check else 0


def run(executable: Executable, inputs: list[Any], transfers: Transfers, repeat: int) -> tuple[dict[str, Any], float]:
    """Run a program; return the arrays of its results and outfeeds by name, and the shortest time in seconds."""
    with transfers.explained():
        results, seconds = best_of(lambda: executable(*inputs), repeat, transfers.queue_infeeds)
    named = {f"result {k}": array for k, array in enumerate(flatten(results))}
    return named | transfers.take_outfeeds(), seconds


def _file_name(name: str) -> str:
    """Return the name in an .npz file: ``arr_0`` of ``result 0``, ``outfeed_0_1`` of ``outfeed 0.1``."""
    return name.replace("result", "arr").replace(" ", "_").replace(".", "_")


def report(profile: Profile, args: argparse.Namespace) -> None:
    """Print the profile and write the trace, as the options ask."""
    if args.profile:
        print(profile)
    if args.trace is not None:
        profile.save_trace(args.trace)


def check(module: HloModule, inputs: list[Any], arrays: dict[str, Any], args: argparse.Namespace) -> int:
    """Compare the results and outfeeds with those of another platform; return 1 if they differ."""
    transfers = Transfers(module, args.infeed)
    other = compile_program(module, platform=args.check, **transfers.options())
    expected, seconds = run(other, inputs, transfers, 1)
    print(f"{args.check}: ran in {seconds * 1e6:.1f} us")
    differences = {name: difference(arrays[name], expected[name]) for name in expected if name in arrays}
    bad = [f"{name} differs: {d.problem}" for name, d in differences.items() if d.problem]
    bad += [f"{name} is only on one platform" for name in sorted(expected.keys() ^ arrays.keys())]
    largest = max((d.relative for d in differences.values()), default=0.0)
    print(*bad, "results differ" if bad else f"results agree: largest difference {largest:.2g} of the scale", sep="\n")
    return 1 if bad else 0


def show(arrays: dict[str, Any]) -> None:
    """Print results, long ones abbreviated."""
    with np.printoptions(threshold=20, edgeitems=3, precision=6, suppress=True):
        for name, array in arrays.items():
            kind = f"{array.dtype}{list(array.shape)}\n" if isinstance(array, np.ndarray) else ""
            print(f"{name}: {kind}{array}")
