"""``cyxla tfcompile``: a graph as an object and a header, with the flags of TensorFlow's tfcompile."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Final

from cyxla import aot
from cyxla.aot import build, ctext, products, sources
from cyxla.aot.config import Config, TensorId
from cyxla.aot.program import Program
from cyxla.errors import InvalidArgumentError
from cyxla.tools.verbs.aot import add
from cyxla.xla.cpu.c.isa_levels import ISA_FEATURES

#: Levels of the names that LLVM has for processors; others are levels themselves.
_PROCESSORS: Final = {
    "x86-64": "x86-64-v1", "generic": "x86-64-v1", "core2": "x86-64-v1", "nehalem": "x86-64-v2",
    "corei7": "x86-64-v2", "westmere": "x86-64-v2", "sandybridge": "x86-64-v2", "ivybridge": "x86-64-v2",
    "haswell": "x86-64-v3", "broadwell": "x86-64-v3", "skylake": "x86-64-v3", "znver1": "x86-64-v3",
    "znver2": "x86-64-v3", "znver3": "x86-64-v3", "alderlake": "x86-64-v3", "skylake-avx512": "x86-64-v4",
    "cascadelake": "x86-64-v4", "icelake-server": "x86-64-v4", "icelake-client": "x86-64-v4",
    "sapphirerapids": "x86-64-v4", "znver4": "x86-64-v4", "znver5": "x86-64-v4",
}  # fmt: skip
_METADATA: Final = """/* Description of the program {name}, as JSON. */
__attribute__((visibility("default"))) extern const char {name}_metadata[];
const char {name}_metadata[] = {text};
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add(parser, "--graph", required=True, metavar="FILE", help="GraphDef, binary or text")
    add(parser, "--config", required=True, metavar="FILE", help="tf2xla.Config, binary or text")
    add(parser, "--checkpoint", metavar="PREFIX", help="values of variables, which become part of the object")
    add(parser, "--cpp-class", default="", metavar="NS::NAME", help="class in the header")
    add(parser, "--entry-point", default="entry", help="name of the function (default entry)")
    add(parser, "--out-header", default="out.h", metavar="FILE", help="header (default out.h)")
    add(parser, "--out-function-object", default="out_model.o", metavar="FILE", help="object (default out_model.o)")
    add(
        parser,
        "--out-metadata-object",
        default="out_helper.o",
        metavar="FILE",
        help="object that describes the program",
    )
    add(parser, "--out-session-module", default="", metavar="FILE", help="HLO of the program, as a proto")
    add(parser, "--target-triple", default="", help="target; x86_64 if it is given")
    add(parser, "--target-cpu", default="", metavar="NAME", help="processor: a level such as x86-64-v3, or haswell")
    add(parser, "--target-features", default="", help="features beside those of the processor, such as +avx2,+fma")
    for flag, text in (
        ("--gen-name-to-index", "look-up of arguments and results by name; always there"),
        ("--gen-program-shape", "types of the program in the class"),
        ("--dump-fetch-nodes", "print the fetched nodes, and compile nothing"),
    ):
        add(parser, flag, type=_bool, nargs="?", const=True, default=False, metavar="BOOL", help=text)


def _bool(text: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"expected true or false, not {text!r}")
    return values[text.lower()]


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    config = Config.parse(Path(args.config).read_bytes())
    if args.dump_fetch_nodes:
        print(",".join(dict.fromkeys(TensorId.of(f.id).node_name for f in config.fetch)))
        return 0
    program = aot.program(Path(args.graph), config=config, name=args.entry_point, checkpoint=args.checkpoint)
    levels = target_levels(args.target_triple, args.target_cpu, args.target_features)
    options = sources.Options(levels, cpp_class=args.cpp_class, program_shape=args.gen_program_shape)
    write(args, program, sources.library(program, options))
    if args.out_session_module:
        _write(args.out_session_module, program.module.to_proto())
    return 0


def target_levels(triple: str, cpu: str, features: str) -> tuple[str, ...] | None:
    """Return the level of a processor with further features; None, which is all levels, without either.

    Raises
    ------
    InvalidArgumentError
        The processor is unknown, or lacks a part of the lowest level.
    """
    if triple and not triple.startswith("x86_64"):
        raise InvalidArgumentError(f"--target-triple {triple}", hint="cyxla aot --target compiles for other machines")
    if not cpu and not features:
        return None
    level = _PROCESSORS.get(cpu, cpu) or "x86-64-v1"
    levels = list(ISA_FEATURES)
    if level not in levels:
        raise InvalidArgumentError(f"--target-cpu {cpu}", hint=f"one of {', '.join((*levels, *_PROCESSORS))}")
    present = {f for known in levels[: levels.index(level) + 1] for f in ISA_FEATURES[known]}
    for word in filter(None, features.split(",")):
        if word[0] not in "+-":
            raise InvalidArgumentError(f"--target-features {word}", hint="write +avx2 or -avx512f")
        present = present | {word[1:]} if word[0] == "+" else present - {word[1:]}
    complete = [k for k, known in enumerate(levels) if not set(ISA_FEATURES[known]) <= present]
    return (levels[(complete[0] if complete else len(levels)) - 1],)


def write(args: argparse.Namespace, program: Program, made: sources.Library) -> None:
    """Write the objects and the header with the files that it includes."""
    name, files = made.name, made.files
    metadata = _METADATA.format(name=name, text=ctext.string(products.metadata(made, [program])))
    with tempfile.TemporaryDirectory(prefix="cyxla-aot-") as scratch:
        folder = Path(scratch)
        function = build.relocatable(build.objects(files, folder), folder / f"{name}.o")
        _write(args.out_function_object, function.read_bytes())
        helper = build.objects({f"{name}.metadata.c": metadata.encode()}, folder)
        _write(args.out_metadata_object, helper[0].read_bytes())
    header = Path(args.out_header)
    _write(header, files[f"{name}.h"])
    build.write_files({n: v for n, v in files.items() if "/" in n and products.is_interface(n)}, header.parent)


def _write(path: Any, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)
