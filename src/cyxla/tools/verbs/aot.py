"""``cyxla aot``: a C library or a wheel of a function, a program or a graph."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from cyxla import aot
from cyxla.aot import products
from cyxla.aot.config import Config, Feed, Fetch, TensorId
from cyxla.errors import InvalidArgumentError
from cyxla.numpy import spec
from cyxla.tools.programs import read_arrays, read_shape

_THREADS = {None: None, True: "pthreads", False: "none"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "program",
        help="HLO or StableHLO text, a proto (.pb), a SavedModel's folder, a graph with --config or --fetch, or a "
        "function: module:name or file.py:name",
    )
    add(parser, "--spec", action="append", default=[], metavar="TYPE[SIZES]", help="argument of a function: f32[2,3]")
    add(parser, "--kind", choices=products.KINDS, default="shared", help="kind of the library (default shared)")
    add(parser, "--wheel", dest="kind", action="store_const", const="wheel", help="the same as --kind wheel")
    add(parser, "--name", help="name of the library and of its program, an identifier of C; of a wheel's package alone")
    add(parser, "--version", default="0.1.0", help="version of a wheel (default 0.1.0)")
    add(parser, "--out", default=".", metavar="FOLDER", help="folder of the files (default: this one)")
    add(parser, "--target", default="", metavar="MACHINE", help="machine of the library, such as aarch64")
    add(parser, "--target-cpu", metavar="LEVELS", help="processor levels with code, such as x86-64-v1,x86-64-v3")
    add(
        parser, "--threads", action=argparse.BooleanOptionalAction,
        help="use a pool of threads, from pthreads (default for wheels alone)",
    )  # fmt: skip
    add(parser, "--weights", choices=("embed", "file"), default="embed", help="where constants are (default embed)")
    add(parser, "--bind", action="append", default=[], metavar="NAME=FILE.npy", help="argument inside the library")
    add(parser, "--seed", type=int, default=0, help="seed of the random numbers of programs")
    add(parser, "--cpp-class", default="", metavar="NS::NAME", help="C++ class in the header")
    add(parser, "--gen-program-shape", action="store_true", help="types of the program in the C++ class")
    add(parser, "--test", action="store_true", help="also write a C program that tests the library")
    add(parser, "--benchmark", action="store_true", help="also write a C program that times the library")
    add(parser, "--config", metavar="FILE", help="tf2xla.Config of a graph")
    add(parser, "--feed", action="append", default=[], metavar="TENSOR=SIZES", help="argument of a graph: x:0=2,3")
    add(parser, "--fetch", action="append", default=[], metavar="TENSOR", help="result of a graph")
    add(parser, "--checkpoint", metavar="PREFIX", help="values of the variables of a graph")
    add(parser, "--signature", help="signature of a SavedModel (default serving_default)")


def add(parser: argparse.ArgumentParser, flag: str, **facts: Any) -> None:
    """Add a flag that is spelt with dashes or underscores."""
    names = dict.fromkeys((flag, "--" + flag.removeprefix("--").replace("-", "_")))
    parser.add_argument(*names, **facts)


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    made = aot.compile(
        read(args),
        directory=args.out,
        kind=args.kind,
        name=args.name,
        machine=args.target,
        isa=args.target_cpu.split(",") if args.target_cpu else None,
        threads=_THREADS[args.threads],
        weights=args.weights,
        cpp_class=args.cpp_class,
        program_shape=args.gen_program_shape,
        test=args.test,
        benchmark=args.benchmark,
        version=args.version,
    )
    print(made)
    return 0


def read(args: argparse.Namespace) -> aot.Program:
    """Return the program that the arguments describe."""
    name = None if args.kind == "wheel" else args.name
    options: dict[str, Any] = {"name": name, "bind": dict(map(_binding, args.bind)), "seed": args.seed}
    path, _, function = args.program.rpartition(":")
    if function and path and not Path(args.program).exists():
        return aot.program(load_function(path, function), *map(read_spec, args.spec), **options)
    options |= _graph_options(args)
    return aot.program(Path(args.program), *map(read_spec, args.spec), **options)


def _graph_options(args: argparse.Namespace) -> dict[str, Any]:
    if Path(args.program).is_dir():
        shapes = dict(map(_feed, args.feed))
        return {"signature": args.signature, "shapes": shapes}
    if args.config:
        return {"config": Config.parse(Path(args.config).read_bytes()), "checkpoint": args.checkpoint}
    if args.fetch:
        feeds = [Feed(TensorId.of(name), sizes) for name, sizes in map(_feed, args.feed)]
        return {"config": Config(feeds, [Fetch(TensorId.of(f)) for f in args.fetch]), "checkpoint": args.checkpoint}
    return {}


def _feed(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.partition("=")
    if not equals or not all(n.strip().isdecimal() for n in sizes.split(",") if n):
        raise InvalidArgumentError(f"--feed {text}", hint="write NAME=2,3, or NAME= for a scalar")
    return name, tuple([int(n) for n in sizes.split(",") if n])


def _binding(text: str) -> tuple[int | str, Any]:
    name, equals, path = text.partition("=")
    if not equals:
        raise InvalidArgumentError(f"--bind {text}: no '='", hint="write NAME=FILE.npy")
    return int(name) if name.isdecimal() else name, read_arrays(path)[0]


def read_spec(text: str) -> Any:
    """Return the spec of a text such as ``f32[2,3]`` or ``float32[]``.

    Raises
    ------
    InvalidArgumentError
        The text is no such spec.
    """
    shape = read_shape(text)
    return spec(shape.dims, shape.dtype.numpy_dtype)


def load_function(place: str, name: str) -> Any:
    """Return a function of a module or of a file.

    Raises
    ------
    InvalidArgumentError
        The module or the function does not exist.
    """
    if place.endswith(".py"):
        module = _load_file(Path(place))
    else:
        if "" not in sys.path:
            sys.path.insert(0, "")
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            raise InvalidArgumentError(f"cannot import {place}: {error}") from None
    function = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise InvalidArgumentError(f"{place} has no function {name!r}")
    return function


def _load_file(path: Path) -> Any:
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None or not path.exists():
        raise InvalidArgumentError(f"there is no file {path}")
    module = sys.modules[path.stem] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
