"""Which parts of the headers a text gets."""

import subprocess

from cyxla.xla.cpu.c.prelude import abi, expanded_size, prelude


def test_nothing_but_the_contract():
    assert prelude("int f(void) { return 0; }") == abi()


def test_the_prelude_includes_dependencies():
    text = prelude("x = cyx_maximum_f32(a, b);")
    assert "cyx_maximum_f32" in text
    assert "cyx_erf_f32" not in text
    assert text.index("cyx_status") < text.index("cyx_maximum_f32")


def test_names_in_comments_do_not_count():
    assert prelude("/* cyx_maximum_f32 */") == abi()


def test_every_block_compiles_with_its_dependencies():
    for name in (
        "cyx_exponential_f32",
        "cyx_sine_f64_slow",
        "cyx_lanes_add_f32",
        "cyx_tile_4",
        "cyx_tile_16",
        "cyx_stream",
        "cyx_fold_multiply_f64",
    ):
        text = prelude(f"void *p = (void *){name};") + f"void *p = (void *){name};\n"
        command = [
            "gcc",
            "-std=gnu11",
            "-fsyntax-only",
            "-Wall",
            "-Wno-unused",
            "-Werror",
            "-march=native",
            "-x",
            "c",
            "-",
        ]
        result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr


def test_names_include_their_code_and_dependencies():
    (plain,) = {expanded_size(text) for text in ("", "x = 1;", "cyx_status s;")}
    assert plain == 0
    once = expanded_size("cyx_exponential_f32(x)")
    assert once > 500
    assert expanded_size("cyx_exponential_f32(x) + cyx_exponential_f32(y)") == 2 * once
    assert expanded_size("cyx_power_f32(x, y)") > expanded_size("cyx_exp_scaled_f32(x, n)")
