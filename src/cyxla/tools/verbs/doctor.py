"""``cyxla doctor``: versions, compiler and settings on this machine, and a self test."""

from __future__ import annotations

import argparse
import platform
import warnings
from importlib.metadata import PackageNotFoundError, version

import numpy as np

import cyxla
from cyxla import config
from cyxla.errors import OpError
from cyxla.tools.compare import difference
from cyxla.xla.client import compile_program
from cyxla.xla.service import platforms

PACKAGES = ("numpy", "scipy", "ml_dtypes", "protobuf", "platformdirs", "rich")
SELF_TEST = """
HloModule self_test
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }
ENTRY e {
  a = f32[64,48] parameter(0)
  b = f32[48,32] parameter(1)
  d = f32[64,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,32] tanh(d)
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add
}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "--self-test", action="store_true", help="compile a small program and check it against the interpreter"
    )


def main(args: argparse.Namespace) -> int:
    """Run the verb; the status is 1 if a setting is wrong or the self test fails."""
    for name, value in facts().items():
        print(f"{name:16s} {value}")
    try:
        config.check_environment()
    except OpError as error:
        print(f"{'settings':16s} {error}")
        return 1
    return self_test() if args.self_test else 0


def facts() -> dict[str, str]:
    """Return versions, compiler, instruction set, threads and cache folder."""
    from cyxla.xla.cpu.native import cache, compiler_search
    from cyxla.xla.cpu.native import library as native

    compiler = compiler_search.find()
    store = cache.open_cache()
    return {
        "cyxla": cyxla.__version__,
        "python": f"{platform.python_version()} on {platform.machine()}",
        **{name: _version(name) for name in PACKAGES},
        "platforms": ", ".join(platforms()),
        "C compiler": " ".join(compiler.compiler.command)
        if compiler
        else "none: install gcc or clang, or pip install cyxla[cc]",
        "instructions": f"{compiler.isa}, {compiler.vector_bits}-bit vectors" if compiler else "-",
        "threads": str(native.threads()),
        "disk cache": str(store.directory) if store else "off",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def self_test() -> int:
    """Compile and run a small program, and compare its result with the interpreter's."""
    from cyxla.xla.cpu.native import compiler_search

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 48), np.float32), rng.standard_normal((48, 32), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a missing compiler was reported above
        executable = compile_program(SELF_TEST, platform="cpu", cache=False)
    actual = executable(a, b)
    expected = compile_program(SELF_TEST, platform="interpreter")(a, b)
    deviation = difference(actual, expected)
    passed = "passed" if compiler_search.find() else "passed, evaluated because there is no C compiler"
    print(f"{'self test':16s} {deviation.problem or passed}")
    return 1 if deviation.problem else 0
