"""Claims: a program compiled with ``autotune=True`` is not slower by 5 %, and faster for some awkward shapes.

Most products and convolutions keep the sizes of the rules; a search takes less than three seconds for each kernel.
"""

import time

import numpy as np
import pytest

import cyxla

DOT = "ENTRY e {{ a = f32[{a}] parameter(0) b = f32[{b}] parameter(1) ROOT r = f32[{r}] dot(a, b), {dims} }}"
CONVOLUTION = (
    "ENTRY e {{ x = f32[{x}] parameter(0) w = f32[{w}] parameter(1) "
    "ROOT r = f32[{r}] convolution(x, w), window={{{window}}}, dim_labels=b01f_01io->b01f }}"
)
ROWS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
COLUMNS = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
BATCH = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
#: Programs, and the least gain.
PROGRAMS = {
    "40x40x40, 200 times": (DOT.format(a="200,40,40", b="200,40,40", r="200,40,40", dims=BATCH), 1.1),
    "50000x32x17": (DOT.format(a="50000,32", b="32,17", r="50000,17", dims=ROWS), 0.95),
    "20000x64x33": (DOT.format(a="20000,64", b="64,33", r="20000,33", dims=ROWS), 0.95),
    "64x30000x64": (DOT.format(a="64,30000", b="30000,64", r="64,64", dims=ROWS), 0.95),
    "200x700x300, right transposed": (DOT.format(a="200,700", b="300,700", r="200,300", dims=COLUMNS), 0.95),
    "513x513x513": (DOT.format(a="513,513", b="513,513", r="513,513", dims=ROWS), 0.95),
    "5x5 convolution, 4 to 32 features": (
        CONVOLUTION.format(x="4,60,60,4", w="5,5,4,32", r="4,56,56,32", window="size=5x5"), 0.95,
    ),
    "3x3 convolution, 16 to 24 features": (
        CONVOLUTION.format(x="4,61,61,16", w="3,3,16,24", r="4,59,59,24", window="size=3x3"), 0.95,
    ),
    "1x1 convolution, 256 to 100 features": (
        CONVOLUTION.format(x="8,14,14,256", w="1,1,256,100", r="8,14,14,100", window="size=1x1"), 0.95,
    ),
}  # fmt: skip
ROUNDS = 200  # in turn; the least times count


@pytest.mark.parametrize("name", PROGRAMS)
def test_autotuned(benchmark, claim, name):
    text, least = PROGRAMS[name]
    plain = cyxla.compile(text)
    started = time.perf_counter()
    tuned = cyxla.compile(text, autotune=True, cache=False)
    seconds = time.perf_counter() - started
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape.dims, np.float32) for shape in plain.inputs]
    assert plain(*arguments).tobytes() == tuned(*arguments).tobytes()
    pairs = [(_time(plain, arguments), _time(tuned, arguments)) for _ in range(ROUNDS)]
    plain_least, tuned_least = (min(times) for times in zip(*pairs, strict=True))
    claim(f"{name}: times as fast as untuned", plain_least / tuned_least, "x", at_least=least)
    claim("  seconds of the search", seconds, "s", at_most=3)
    benchmark(tuned, *arguments)


def _time(program, arguments):
    started = time.perf_counter()
    for _ in range(2):
        program(*arguments)
    return time.perf_counter() - started
