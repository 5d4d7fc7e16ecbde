"""C programs that test and time a library with recorded arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla.aot import ctext
from cyxla.aot.program import NamedArray, Program
from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.containers import flatten
from cyxla.xla.service import LocalService

Array = np.ndarray[Any, Any]

_FLOATS: Final = {"float32": ("float", 1e-4), "float64": ("double", 1e-9)}  # type of parts, tolerance of the scale
_PARTS: Final = {"complex64": "float32", "complex128": "float64"}
#: Largest difference of other floats, which are compared as numbers by the test's own conversion.
_HALF: Final = {"float16": ("half", 1e-2), "bfloat16": ("bfloat", 5e-2)}

_HEAD = """/* {title} */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "{library}.h"

{data}
"""
_TEST = """
static double cyx_half(uint16_t x) {{
  const int e = x >> 10 & 31, m = x & 1023;
  const double v = e == 0 ? ldexp(m, -24) : e < 31 ? ldexp(m + 1024, e - 25) : m ? NAN : INFINITY;
  return x >> 15 ? -v : v;
}}

static double cyx_bfloat(uint16_t x) {{
  const uint32_t bits = (uint32_t)x << 16;
  float v;
  memcpy(&v, &bits, 4);
  return v;
}}

/* Element k of an array of floats: kind 'f' float, 'd' double, 'h' half, 'b' bfloat. */
static double cyx_element(const void *array, char kind, int64_t k) {{
  switch (kind) {{
    case 'f': return ((const float *)array)[k];
    case 'd': return ((const double *)array)[k];
    case 'h': return cyx_half(((const uint16_t *)array)[k]);
    default: return cyx_bfloat(((const uint16_t *)array)[k]);
  }}
}}

/* Return whether results agree: floats up to a share of the largest one, since levels round differently. */
static int cyx_agree(const void *got, const void *want, char kind, int64_t count, int64_t bytes, double tolerance) {{
  if (!kind) return !memcmp(got, want, (size_t)bytes);
  double scale = 0;
  for (int64_t k = 0; k < count; ++k) {{
    const double w = fabs(cyx_element(want, kind, k));
    if (w > scale && w <= 1.7e308) scale = w;
  }}
  for (int64_t k = 0; k < count; ++k) {{
    const double g = cyx_element(got, kind, k), w = cyx_element(want, kind, k);
    if (!(g == w || (g != g && w != w) || fabs(g - w) <= tolerance * scale)) {{
      fprintf(stderr, "element %lld is %.17g, want %.17g\\n", (long long)k, g, w);
      return 0;
    }}
  }}
  return 1;
}}

static int32_t (*const cyx_program)(const void *const *, void *const *, const cyx_aot_run *) = {name};

int main(void) {{
{load}  char message[CYX_AOT_MESSAGE_BYTES] = {{0}};
  const cyx_aot_run cyx_run = {{.size = sizeof(cyx_aot_run), .message = message}};
  const int status = cyx_program(cyx_arguments, cyx_results, &cyx_run);
  if (status != {status}) {{
    fprintf(stderr, "{name} returned %d, want {status}: %s\\n", status, message);
    return 1;
  }}
{checks}  printf("{name}: ok\\n");
  return 0;
}}
"""
_CHECK = """  if (!cyx_agree(cyx_results[{k}], cyx_result{k}, {kind}, {count}, {nbytes}, {tolerance})) {{
    fprintf(stderr, "result {k} differs\\n");
    return 1;
  }}
"""
_BENCHMARK = """
static _Alignas(64) char cyx_temp[{temp_bytes}];

static double cyx_now(void) {{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}}

static int32_t (*const cyx_program)(const void *const *, void *const *, const cyx_aot_run *) = {name};

/* Arguments: number of calls, and threads of the library. */
int main(int argc, char **argv) {{
{load}  const long calls = argc > 1 ? atol(argv[1]) : 100;
  const cyx_aot_run cyx_run = {{
      .size = sizeof(cyx_aot_run), .threads = argc > 2 ? atoi(argv[2]) : 0, .temp = cyx_temp}};
  double best = INFINITY, total = 0;
  for (long k = 0; k < calls; ++k) {{
    const double begin = cyx_now();
    const int status = cyx_program(cyx_arguments, cyx_results, &cyx_run);
    const double us = cyx_now() - begin;
    if (status) {{
      fprintf(stderr, "{name} returned %d\\n", status);
      return 1;
    }}
    total += us;
    if (us < best) best = us;
  }}
  printf("{name}: %ld calls, best %.3f us, mean %.3f us\\n", calls, best, total / (double)(calls ? calls : 1));
  return 0;
}}
"""
_LOAD = """  const int loaded = {library}_load("{library}.weights");
  if (loaded) {{
    fprintf(stderr, "{library}.weights: error %d\\n", loaded);
    return 1;
  }}
"""


class Trial(NamedTuple):
    """Programs to write for a library.

    Attributes
    ----------
    library : str
        Name of the library.
    in_file : bool
        Whether its weights are in a file.
    temp_bytes : int
        Bytes of temporaries of a call.
    test, benchmark : bool
        Whether to write each of the programs.
    """

    library: str
    in_file: bool
    temp_bytes: int
    test: bool
    benchmark: bool


def write(program: Program, trial: Trial) -> dict[str, bytes]:
    """Return ``NAME.test.c`` and ``NAME.benchmark.c``.

    Raises
    ------
    UnimplementedError
        Sizes of arguments or results are known at run time alone.
    """
    if program.options.live_results or any(s.is_dynamic for s in _leaves(program)):
        raise UnimplementedError("tests of programs with arrays of run-time size")
    arguments = recorded_arguments(program)
    data = "".join(_data("cyx_argument", k, a) for k, a in enumerate(arguments))
    data += _pointers("const void *const cyx_arguments", [f"cyx_argument{k}" for k in range(len(arguments))])
    data += "".join(f"static uint64_t cyx_got{k}[{-(-a.nbytes // 8) + 1}];\n" for k, a in enumerate(program.results))
    data += _pointers("void *const cyx_results", [f"cyx_got{k}" for k in range(len(program.results))])
    facts = {
        "name": program.name,
        "load": _LOAD.format(library=trial.library) if trial.in_file else "",
    }
    files = {}
    if trial.test:
        status, results = run(program, arguments)
        head = _HEAD.format(
            title=f"Test of {program.name} with recorded arguments and results.",
            library=trial.library,
            data=data + "".join(_data("cyx_result", k, a) for k, a in enumerate(results)),
        )
        checks = "" if status else "".join(_check(k, a) for k, a in enumerate(program.results))
        files[f"{program.name}.test.c"] = head + _TEST.format(status=status, checks=checks, **facts)
    if trial.benchmark:
        head = _HEAD.format(title=f"Benchmark of {program.name}.", library=trial.library, data=data)
        files[f"{program.name}.benchmark.c"] = head + _BENCHMARK.format(temp_bytes=max(trial.temp_bytes, 1), **facts)
    return {name: text.encode() for name, text in files.items()}


def _leaves(program: Program) -> Iterator[Any]:
    for shape in (*(p.shape for p in program.module.parameters), program.module.entry.root.shape):
        yield from shape.leaves()


def recorded_arguments(program: Program) -> list[Array]:
    """Return arguments of normally distributed floats, small integers and fair booleans, the same each time."""
    rng = np.random.default_rng(0)
    return [_random(a, rng) for a in program.arguments]


def _random(array: NamedArray, rng: np.random.Generator) -> Array:
    kind, dims = array.dtype.kind, array.dims
    if kind == "b":
        return np.asarray(rng.random(dims) < 0.5)
    if kind in "iu":
        return np.asarray(rng.integers(0, 3, dims)).astype(array.dtype)
    if kind == "c":
        return np.asarray(rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(array.dtype)
    return np.asarray(rng.standard_normal(dims)).astype(array.dtype)


def run(program: Program, arguments: Sequence[Array]) -> tuple[int, list[Array]]:
    """Run a program on this machine; return its status and results.

    Only programs whose parameters are arrays, or whose arguments are all free, can be run.
    """
    executable = LocalService("cpu").build_executable(program.module, program.options)
    position, values = iter(arguments), []
    for number, parameter in enumerate(program.module.parameters):
        shape = parameter.shape
        values.append(program.bound[number] if number in program.bound else _take(shape, position))
    results, _ = flatten(executable(*values))
    failure = [int(n) for n in np.asarray(results[-1])] if program.checks else [0]
    status = program.checks[failure[0] - 1].code if failure[0] else 0
    return status, [np.asarray(r) for r in results[: len(program.results)]]


def _take(shape: Any, arrays: Iterator[Array]) -> Any:
    return tuple([_take(s, arrays) for s in shape.elements]) if shape.is_tuple else next(arrays)


def _data(name: str, number: int, array: Array) -> str:
    words = ctext.words(np.ascontiguousarray(array).tobytes() or bytes(8))
    return f"static const uint64_t {name}{number}[] = {{\n{words}\n}};\n"


def _pointers(declaration: str, names: Sequence[str]) -> str:
    return f"static {declaration}[] = {{{', '.join(names) or 'NULL'}}};\n"


def _check(number: int, array: NamedArray) -> str:
    name = _PARTS.get(array.dtype.name, array.dtype.name)
    kind, tolerance = {**_FLOATS, **_HALF}.get(name, ("", 0.0))
    parts = 2 if array.dtype.name in _PARTS else 1
    return _CHECK.format(
        k=number,
        kind=f"'{kind[0]}'" if kind else 0,
        count=parts * array.nbytes // array.dtype.itemsize,
        nbytes=array.nbytes,
        tolerance=tolerance,
    )
