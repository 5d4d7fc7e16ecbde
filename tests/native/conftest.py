"""Programs written by hand in C, so that the launcher and the pools are tested without the compiler above them."""

import functools
import textwrap

import pytest

from cyxla.xla.cpu.c import prelude
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.native import library as native


@functools.cache
def _library(body):
    return native.build_library([f"{prelude.abi()}\nCYX_LIBRARY\n{textwrap.dedent(body)}"])


@pytest.fixture
def program():
    """Build a Program from the C text of its functions; the entry is called `entry`."""
    if compiler_search.find() is None:
        pytest.skip("needs a C compiler")

    def build(body, inputs, outputs, results=0, **options):
        return native.Program(_library(body), "entry", inputs, outputs, results, **options)

    return build
