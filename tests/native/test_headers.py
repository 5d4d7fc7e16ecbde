"""Headers that are installed: each compiles alone, in C and C++, and those for users compile together."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builds.plugins import compile_strictly

import cyxla

INCLUDE = Path(cyxla.get_include()) / "cyxla"
PUBLIC = ("abi.h", "call.h", "call_attributes.h", "kernel_plugin.h", "plugin_stamp.h", "aot/library.h")
PUBLIC_CXX = (*PUBLIC, "kernel_plugin.hpp", "aot/function.h")
CASES = [
    *((language, path.name) for path in sorted(INCLUDE.glob("*.h")) for language in ("c", "c++")),
    ("c++", "kernel_plugin.hpp"),
]
SUFFIXES = {"c": "c", "c++": "cpp"}


def check(folder, language, lines):
    lines = [*lines, "extern int nothing;"]  # ISO C forbids an empty file
    path = folder / f"file.{SUFFIXES[language]}"
    path.write_text("".join(f"{line}\n" for line in lines))
    compile_strictly(language, "-c", path, "-o", folder / "file.o")


def includes(headers):
    return [f'#include "cyxla/{name}"' for name in headers]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("language, header", CASES, ids=[f"{header} {language}" for language, header in CASES])
def test_each_header_compiles_alone(tmp_path, language, header):
    check(tmp_path, language, includes([header, header]))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("language, headers", [("c", PUBLIC), ("c++", PUBLIC_CXX)], ids=["c", "c++"])
def test_headers_for_users_compile_together(tmp_path, language, headers, reverse):
    check(tmp_path, language, ["#include <stdint.h>", *includes(headers[::-1] if reverse else headers)])


def test_version_1_of_the_interface_is_asked_for_by_a_macro(tmp_path):
    use = "int compute(cyxla_call *call); int compute(cyxla_call *call) { return call->fail(call, 3, NULL); }"
    lines = ["#include <stddef.h>", "#define CYXLA_KERNEL_ABI 1", *includes(["kernel_plugin.h"]), use]
    check(tmp_path, "c", lines)


def test_others_say_that_they_are_internal():
    others = {path.name for path in INCLUDE.glob("*.h")} - set(PUBLIC) - {"kernel_plugin_1.h"}
    pasted = ["compiler", "complex", "launches", "loops", "math", "math_inverse", "prebuilt", "scalar"]
    assert others == {f"{name}.h" for name in pasted}
    for name in others:
        assert "Internal: " in (INCLUDE / name).read_text().partition("*/")[0]
