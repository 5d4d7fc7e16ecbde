"""Instruction-set levels and compiler flags: one table for the compiler at run time and for the package's build.

It imports nothing, so that the build can read it before anything is installed.
"""

from __future__ import annotations

from typing import NamedTuple

# Explicit features, never -march=native: what the code needs is then part of its cache key. gcc before 11 does not know
# the names x86-64-vN, hence the lists. Each level adds to the one before it.
ISA_FEATURES: dict[str, tuple[str, ...]] = {
    "x86-64-v1": (),
    "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
VECTOR_BITS = {"x86-64-v1": 128, "x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}

# Strict floating point, but without errno and trap flags, which nobody reads. Each unit decides on contraction.
COMPILE_FLAGS = (
    "-std=gnu11", "-ftree-vectorize", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden",
    "-fno-semantic-interposition", "-fno-stack-protector", "-Werror=implicit-function-declaration",
    "-fno-strict-aliasing",  # the same bytes of the arena hold values of several types in turn
)  # fmt: skip
# The passes of gcc's -O2 that make code of this kind faster than -O1 does: a quarter less time in the compiler for one
# or two per cent at run time. Tracking single bits takes long for vectors, and finds nothing.
OPTIMIZE_FLAGS = {
    "gcc": (
        "-O1", "-fexpensive-optimizations", "-fschedule-insns2", "-fcaller-saves", "-finline-small-functions",
        "-falign-functions", "-falign-loops", "-freorder-blocks-algorithm=stc", "-fno-tree-bit-ccp",
    ),
    "clang": ("-O2",),
}  # fmt: skip

# Passes that contract multiplications and additions, added to an optimization level of the user's choice.
LEVEL_FLAGS = {"gcc": ("-fexpensive-optimizations",), "clang": ()}

#: Levels for which functions come prebuilt. Any other level uses those of the level below; outside of
#: x86-64 there is one level without a name.
PREBUILT_LEVELS = ("x86-64-v1", "x86-64-v3", "x86-64-v4")


class Level(NamedTuple):
    """Instruction-set level and the properties of it that the text of kernels depends on.

    Attributes
    ----------
    isa : str
        Name of the level, such as "x86-64-v3"; "" outside of x86-64.
    """

    isa: str

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register in bytes."""
        return VECTOR_BITS.get(self.isa, 128) // 8

    @property
    def registers(self) -> int:
        """Number of vector registers."""
        return 32 if self.vector_bytes == 64 else 16

    @property
    def prebuilt(self) -> str:
        """Name of the level whose prebuilt functions are used."""
        return "x86-64-v1" if self.isa == "x86-64-v2" else self.isa

    @property
    def suffix(self) -> str:
        """Suffix of the names of prebuilt functions for this level."""
        return "_" + self.isa.rpartition("-")[2] if self.isa else "_any"


def isa_flags(isa: str) -> tuple[str, ...]:
    """Return the compiler's flags for a level."""
    levels = list(ISA_FEATURES)
    if isa not in levels:
        return ()
    features = [feature for level in levels[: levels.index(isa) + 1] for feature in ISA_FEATURES[level]]
    return (
        *(f"-m{feature}" for feature in features),
        f"-mprefer-vector-width={VECTOR_BITS[isa]}",
        "-fcf-protection=none",
    )
