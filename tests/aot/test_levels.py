"""The choice of a level by the features of a processor, in C."""

import platform

import pytest
from support.builds.ahead_of_time import needs_gcc, run_command

import cyxla
from cyxla._native import _rt

pytestmark = [needs_gcc, pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")]

MAIN = """
#define CYX_AOT(name) test_##name
#define CYX_AOT_LEVELS LEVELS
#include "cyxla/aot/levels.c"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  if (argc < 5) return printf("%d %d\\n", detected(), test_level()) < 0;
  uint32_t x[4];
  for (int k = 0; k < 4; ++k) x[k] = (uint32_t)strtoul(argv[k + 1], 0, 16);
  return printf("%d\\n", level_of(x[0], x[1], x[2], x[3])) < 0;
}
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")

    def run(*words, levels="1, 3, 4"):
        (folder / "main.c").write_text(MAIN.replace("LEVELS\n", f"{levels}\n"))
        run_command("gcc", "-Wall", "-Wextra", "-Werror", "-I", cyxla.get_include(), "main.c", "-o", "main", cwd=folder)
        return run_command("./main", *words, cwd=folder)

    return run


#: Leaves like those of some processors: 1 in ecx, 7 in ebx, 0x80000001 in ecx; and xcr0.
PROCESSORS = {
    "Sapphire Rapids": (("7ffefbff", "f1bf07ab", "00000121", "e7"), 4),
    "Sapphire Rapids, without AVX-512 in the system": (("7ffefbff", "f1bf07ab", "00000121", "7"), 3),
    "Haswell": (("7ffafbff", "000027ab", "00000021", "7"), 3),
    "Haswell, without AVX in the system": (("7ffafbff", "000027ab", "00000021", "3"), 2),
    "Sandy Bridge": (("1fbae3ff", "00000000", "00000001", "7"), 2),
    "Nehalem": (("009ce3bd", "00000000", "00000001", "0"), 2),
    "Core 2": (("0008e3bd", "00000000", "00000001", "0"), 1),
    "nothing": (("0", "0", "0", "0"), 1),
    "Knights Landing": (("7ffafbff", "1c0d23ab", "00000121", "e7"), 3),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_levels_of_processors(command, name):
    leaves, level = PROCESSORS[name]
    assert int(command(*leaves)) == level


@pytest.mark.parametrize("levels", ["1, 3, 4", "1", "3", "4", "1, 2", "9"])
def test_the_best_level_of_a_library(command, levels):
    detected, index = map(int, command(levels=levels).split())
    assert f"x86-64-v{detected}" == _rt.isa_level()
    usable = [int(level) for level in levels.split(",") if int(level) <= detected]
    assert index == len(usable) - 1
