"""Fragments for make and CMake that build a library of C sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyxla.aot.build import flags_of

_MAKE = """# Rules for lib{name}.a and lib{name}.so: include this file in a Makefile.
{name}_dir := $(dir $(lastword $(MAKEFILE_LIST)))
{name}_objects := $(addprefix $({name}_dir),{objects})
{name}_libs := -lm{pthread}

{rules}
$({name}_dir)lib{name}.a: $({name}_objects)
	$(AR) rcsD $@ $^

$({name}_dir)lib{name}.so: $({name}_objects)
	$(CC) -shared -Wl,--gc-sections -Wl,-soname,lib{name}.so $^ -o $@ $({name}_libs)
{trials}"""
_TRIAL = """
$({library}_dir){program}: $({library}_dir){program}.c $({library}_dir)lib{library}.a
	$(CC) -O1 -std=gnu11 -I$({library}_dir) $^ -o $@ $({library}_libs)
"""
_RULE = """$({library}_dir){file}.o: $({library}_dir){file}
	$(CC) {flags} -I$({library}_dir) {assembler}-c $< -o $@
"""
_CMAKE = """# The library {name}: include this file, then target_link_libraries(program PRIVATE {name}).
enable_language(C ASM)
add_library({name} STATIC
{files})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_LIST_DIR}})
set_target_properties({name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_EXTENSIONS ON)
target_link_libraries({name} PUBLIC m{pthread})
{properties}"""
_PROPERTY = """set_source_files_properties(${{CMAKE_CURRENT_LIST_DIR}}/{file} PROPERTIES COMPILE_OPTIONS "{flags}")
"""


def write(name: str, files: Mapping[str, bytes], *, threads: str) -> dict[str, bytes]:
    """Return ``NAME.mk`` and ``NAME.cmake`` for the files of a library, with flags that gcc and clang know."""
    trials = [n for n in files if n.endswith((".test.c", ".benchmark.c"))]
    compiled = [n for n in files if n.endswith((".c", ".S")) and "/" not in n and n not in trials]
    flags = {n: flags_of(n, "clang") for n in compiled}
    return {
        f"{name}.mk": _make(name, flags, trials, threads).encode(),
        f"{name}.cmake": _cmake(name, flags, threads).encode(),
    }


def _make(name: str, flags: Mapping[str, Sequence[str]], trials: Sequence[str], threads: str) -> str:
    rules = [
        _RULE.format(
            library=name,
            file=f,
            flags=" ".join(flags[f]),
            assembler=f"-Wa,-I$({name}_dir) " if f.endswith(".S") else "",
        )
        for f in flags
    ]
    return _MAKE.format(
        name=name,
        objects=" ".join(f"{f}.o" for f in flags),
        rules="\n".join(rules),
        pthread=" -pthread" if threads == "pthreads" else "",
        trials="".join(_TRIAL.format(library=name, program=n.removesuffix(".c")) for n in trials),
    )


def _cmake(name: str, flags: Mapping[str, Sequence[str]], threads: str) -> str:
    assembler = "-Wa,-I${CMAKE_CURRENT_LIST_DIR}"
    options = {f: (assembler,) if f.endswith(".S") else words for f, words in flags.items()}
    return _CMAKE.format(
        name=name,
        files="\n".join(f"  ${{CMAKE_CURRENT_LIST_DIR}}/{f}" for f in flags),
        properties="".join(_PROPERTY.format(file=f, flags=";".join(words)) for f, words in options.items()),
        pthread=" pthread" if threads == "pthreads" else "",
    )
