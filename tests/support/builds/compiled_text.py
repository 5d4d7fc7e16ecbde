"""Images of shared objects from C texts, by the compiler of this process, and scripts that stand for a compiler."""

import ctypes
import stat
import time

from cyxla.xla.cpu.native import build, compiler_search
from cyxla.xla.cpu.native.toolchain import Unit


def compile_c(text, *, contract=False):
    return compile_units([Unit(text, contract)])


def compile_units(units, cache=None):
    texts = [Unit(unit) if isinstance(unit, str) else unit for unit in units]
    return build.compile_units(compiler_search.require(), texts, cache)


def load_image(image, tmp_path):
    path = tmp_path / f"library{time.monotonic_ns()}.so"
    path.write_bytes(image)
    return ctypes.CDLL(str(path))


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
