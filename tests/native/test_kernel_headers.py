"""Headers of kernels: each compiles alone, more than once in a file, and no long C is left in strings of Python."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import cyxla
from cyxla.types import ElementType
from cyxla.xla.cpu.c.isa_levels import ISA_FEATURES, isa_flags
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.convolution.templates import Convolution, RowConvolution
from cyxla.xla.cpu.dot import templates
from cyxla.xla.cpu.dot.parameters import DOT, TILE
from cyxla.xla.cpu.fft.passes import fixed_panels, passes
from cyxla.xla.cpu.linalg.tiles import Tiles

INCLUDE = Path(cyxla.get_include())
KERNELS = INCLUDE / "cyxla" / "kernels"
SOURCES = Path(cyxla.__file__).parent / "xla" / "cpu"
STRICT = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Werror")

Instance = tuple[str, dict[str, str | int]]  # a header and its parameters


def keys(bits: int) -> Instance:
    return "sort/sort_keys.h", {"KEYS_PREFIX": f"keys{bits}", "KEYS_BITS": bits}


def by_bits(bits: int, key: str, indices: int) -> Instance:
    prefix = f"{'order' if indices else 'sort'}_{bits}"
    return "sort/sort_by_bits.h", {
        "SORT_PREFIX": prefix, "SORT_BITS": bits, "SORT_INDICES": indices, "SORT_KEY": key,
    }  # fmt: skip


def rows(prefix: str, key: str, keys: str) -> Instance:
    return "sort/sort_rows.h", {
        "SORT_PREFIX": prefix, "SORT_KEY": key, "SORT_KEYS_PREFIX": keys, "SORT_SAMPLES": 16, "SORT_MAX_BUCKETS": 64,
        "SORT_PADDING": 64,
    }  # fmt: skip


def topk(bits: int, key: str) -> Instance:
    return "sort/topk.h", {"TOPK_PREFIX": f"topk{bits}", "TOPK_KEY": key, "TOPK_BITS": bits, "TOPK_MAX_K": 128}


def packed(prefix: str, size: int, indices: int = 0) -> Instance:
    return "compaction/compact_elements.h", {
        "PACK_PREFIX": f"{prefix}_{size}",
        "PACK_BYTES": size,
        "PACK_INDICES": indices,
    }


def fft(prefix: str, bits: int, *headers: str) -> list[str | Instance]:
    """Return the named headers of Fourier transforms behind the first one, with the passes where they belong."""
    size = bits // 8
    parts: dict[str, list[str | Instance]] = {
        "moves": [("fft/fft_moves.h", {"FFT_SQUARE": f"cyx_square_{size}", "FFT_SQUARE_ROWS": f"CYX_SQUARE_{size}"})],
        "real": [("fft/fft_real.h", {"FFT_C2R": 0}), ("fft/fft_real.h", {"FFT_C2R": 1})],
        "lines": [passes(frozenset({0, 1, 4})) + fixed_panels(frozenset({32})), ("fft/fft_lines.h", {})],
        "stages": [("fft/fft.h", {"FFT_STACK_BYTES": 4096})],
    }
    vectors: Instance = ("fft/fft_vectors.h", {"FFT_PREFIX": prefix, "FFT_BITS": bits})
    return [vectors, *(part for name in headers for part in parts[name])]


FFT_MOVES = tuple(
    f"a_{name}" for name in (
        "multiply", "gather", "scatter", "gather_real", "scatter_real", "copy_columns", "transpose"
    )
)  # fmt: skip
TILES = Tiles(ElementType.F32, vectors=2, lanes=4, rows=4)


def on_tiles(functions: str, header: str, family: str, **parameters: str | int) -> list[str | Instance]:
    """Return some functions on tiles and a header that calls them, with parameters less the prefix of their names."""
    named = {f"{family}_{name}": value for name, value in {"PREFIX": "a", "PADDED": 24, **parameters}.items()}
    return [TILES.definitions(functions.split(), named[f"{family}_PREFIX"]), (header, named)]


def cholesky(prefix: str, functions: str, lower: int, info: int, **transpose: str) -> list[str | Instance]:
    return on_tiles(
        functions, "linalg/cholesky.h", "CHOLESKY", PREFIX=prefix, BITS=32, LANES=4, WIDTH=8, TILE_ROWS=4, N=20,
        PANELS=3, LOWER=lower, INFO=info, X_OFFSET=64, FAILED_OFFSET=0, **transpose,
    )  # fmt: skip


def lu(prefix: str, info: int) -> list[str | Instance]:
    return on_tiles(
        "copy update_nn solve_unit rank_1_update", "linalg/lu.h", "LU", PREFIX=prefix, BITS=32, LANES=4, WIDTH=8,
        TILE_ROWS=4, M=22, N=20, K=20, PANELS=3, LAST_PHASE=3, INFO=info, ZERO_OFFSET=0, PIVOTS_OFFSET=64,
        X_OFFSET=256, L_OFFSET=4096,
    )  # fmt: skip


def reflectors(functions: str, transpose: int) -> list[str | Instance]:
    return on_tiles(
        functions, "linalg/block_reflector.h", "QR", LANES=4, WIDTH=8, TILE_ROWS=4, BLOCKS=2, TRANSPOSE=transpose,
        X_OFFSET=0,
        V_OFFSET=4096, T_OFFSET=8192,
    )  # fmt: skip


def solve(prefix: str, functions: str, flags: dict[str, int], **transpose: str) -> list[str | Instance]:
    return on_tiles(
        functions, "linalg/triangular_solve.h", "SOLVE", PREFIX=prefix, WIDTH=8, TILE_ROWS=4, N=20, M=9, PANELS=2,
        TILES=5,
        PARTS=5, L_OFFSET=0, X_OFFSET=4096, **flags, **transpose,
    )  # fmt: skip


def solve_vector(prefix: str, **flags: int) -> list[str | Instance]:
    return on_tiles(
        "", "linalg/vector_solve.h", "SOLVE", PREFIX=prefix, LANES=4, N=100, STRIDE=2, APART=1, X_OFFSET=0, **flags
    )


def tile(name: str, sizes: dict[str, int] | None = None, **more: int) -> list[str | Instance]:
    """Return a tile of a product; of `sizes`, or of any."""
    constants = TILE.constant("p_tile", f"{name}_sizes", sizes) if sizes else ""
    parameters = {
        "ROWS": 6,
        "VECTORS": 4,
        "LANES": 4,
        "TAIL": 0,
        "CONSTANT": int(bool(sizes)),
        "COLUMNS": 0,
        "PREFETCH": 0,
    }
    made = {f"TILE_{key}": value for key, value in (parameters | more).items()}
    arguments = "const p_tile *, const p_e *restrict, const p_e *restrict, p_e *restrict, const char *, int64_t"
    return [
        f"static void {name}({arguments});\n{constants}\n",
        ("dot/dot_tile.h", {"TILE_NAME": name, "TILE_PREFIX": "p", "TILE_ELEMENT": "float", **made}),
    ]


def dot(units: int, pack: int, *, constant: bool = True) -> list[str | Instance]:
    """Return a product with prefix p, and its table of tiles."""
    shape = "[2][2]" if constant else "[3][8][14]"
    values = {"m": 6, "n": 60, "k": 9, "panels": 3, "width": 16, "ranges": 1, "tiles": 1, "height": 6}
    values |= {"group_panels": 1}
    defined = DOT.constant("p_numbers", "p_constants", values) if constant else ""
    names = (
        "PREFIX",
        "ELEMENT",
        "LANES",
        "CONSTANT",
        "TILES",
        "MAX_TILE",
        "UNITS",
        "PACK",
        "TRANSPOSE",
        "PACKED_ELEMENTS",
        "SUM_ELEMENTS",
    )
    made = ("p", "float", 4, int(constant), "p_tiles", 96, units, pack, "transpose", 64, 64)
    return [
        f"static const p_tile_function p_tiles{shape};\n{defined}\n",
        "static inline void transpose(void *a, int64_t b, const void *c, int64_t d, int64_t e, int64_t f)\n"
        "{ (void)a, (void)b, (void)c, (void)d, (void)e, (void)f; }\n"
        if pack == templates.PACK_ANY
        else "",
        ("dot/dot.h", {f"DOT_{name}": value for name, value in zip(names, made, strict=True)}),
    ]


def few_rows(
    text: type[templates.FewRows], header: str, family: str, kernel: tuple[str, dict[str, int]],
    more: dict[str, int], **sizes: int,
) -> list[str | Instance]:  # fmt: skip
    """Return a product of few rows with prefix p and one micro-kernel; of `sizes`, or of any."""
    few, constant = text("p", "double", 32, sizes or None), int(bool(sizes))
    made = {"NAME": "tile", "PREFIX": "p", "ELEMENT": "double", "LANES": 4, "CONSTANT": constant, **more}
    arguments = "const p_numbers *, const p_e *restrict, const p_e *restrict, p_e *restrict" + few.more_arguments
    driver, family_of_driver = kernel[0], "FEW" if text is templates.InnerText else "SUMS"
    whole = {"PREFIX": "p", "ELEMENT": "double", "CONSTANT": constant, **kernel[1]}
    return [
        "\n".join(few.types) + f"\nstatic void tile({arguments});\n",
        (header, {f"{family}_{key}": value for key, value in made.items()}),
        "static const p_function p_functions[] = {tile};\n",
        (driver, {f"{family_of_driver}_{key}": value for key, value in whole.items()}),
    ]


#: Types and kernels of a pass over a matrix.
ONE_PASS = """\
typedef struct { int64_t units, task_units, phase, inner, sums; } p_pass;
typedef struct { int64_t rows; } p_inner_numbers, p_combination_numbers;
cyx_status p_inner_run(const p_inner_numbers *s, void *const *bufs, int64_t begin, int64_t end, void *after);
cyx_status p_combination_run(const p_combination_numbers *s, void *const *bufs, int64_t begin, int64_t end,
                             void *after);
"""


def inner_products(sums: int = 0, parts: int = 2, **sizes: int) -> list[str | Instance]:
    more = {"COLUMNS": 4, "PREFETCH": 2048 if sizes else 0, "PARTS": parts, "SPAN": 8}
    return few_rows(
        templates.InnerText, "dot/inner_products.h", "INNER", ("dot/dot_few_rows.h", {"SUMS": sums}), more, **sizes
    )


def row_sums(after: int = 0, *, several: bool = False, **sizes: int) -> list[str | Instance]:
    header, family, more = (
        ("dot/row_combinations.h", "COMBINATIONS", {"ROWS": 32}) if several
        else ("dot/row_combination.h", "COMBINE", {"LOCALITY": 3})
    )  # fmt: skip
    return few_rows(templates.RowSumsText, header, family, ("dot/dot_row_sums.h", {"AFTER": after}), more, **sizes)


def convolution(*headers: str, rank: int, dilated: int = 0, **sizes: int) -> list[str | Instance]:
    """Return the named headers of convolutions with prefix p, one after the other; of `sizes`, or of any."""
    types = Convolution("p", "float", 16, 16, rank, 64, {"rank": rank, **sizes} if sizes else None).types
    arguments = "const p_numbers *, const p_block *, const p_e *const *, const p_e *, p_e *restrict, const p_e *"
    leaves = sizes.get("leaves", int(not sizes))
    functions = ", ".join(f"p_{name}_{rank}" for name in ("origins", "addresses", "has_nans")[: 2 + leaves])
    functions += "" if leaves else ", 0"
    tables = f"static const p_tile p_tiles[] = {{tile}};\nstatic const p_window p_windows[] = {{{{{functions}}}}};\n"
    constant = int(bool(sizes))
    parts: dict[str, tuple[str, Instance]] = {
        "tile": (f"static void tile({arguments});\n", ("convolution/convolution_tile.h", {
            "TILE_NAME": "tile", "TILE_PREFIX": "p", "TILE_ELEMENT": "float", "TILE_ROWS": 7, "TILE_VECTORS": 4,
            "TILE_LANES": 4, "TILE_HALVES": constant, "TILE_PREFETCH": constant,
            "TILE_CONSTANT": constant + (sizes.get("blocks", 1) > 1),
        })),
        "window": ("static float p_zeros[64];\n", ("convolution/convolution_window.h", {
            "WINDOW_PREFIX": "p", "WINDOW_RANK": rank, "WINDOW_DILATED": dilated, "WINDOW_SCALAR": dilated,
            "WINDOW_LEAVES": leaves, "WINDOW_CONSTANT": constant,
        })),
        "whole": (tables, ("convolution/convolution.h", {
            "CONVOLUTION_PREFIX": "p", "CONVOLUTION_ELEMENT": "float", "CONVOLUTION_LANES": 4,
            "CONVOLUTION_PREFETCH": constant, "CONVOLUTION_LEAVES": leaves, "CONVOLUTION_CONSTANT": constant,
        })),
    }  # fmt: skip
    return ["\n".join([*types, ""]), *(part for header in headers for part in parts[header])]


def convolution_tile(positions: int, **parameters: int) -> list[str | Instance]:
    """Return a tile of a convolution in rows, with prefix p."""
    sizes = {"depth": 1000, "size0": 3} if parameters.get("CONSTANT") else None
    text = RowConvolution("p", "float", 16, rank=parameters.get("RANK", 3), sizes=sizes)
    made = {
        "NAME": "tile", "PREFIX": "p", "ELEMENT": "float", "POSITIONS": positions, "VECTORS": 2, "LANES": 4,
        "DEPTHWISE": 0, "RANK": 3, "CONSTANT": 0, "AFTER": "after", "DILATED": 0, "CHAIN": 0, **parameters,
    }  # fmt: skip
    after = "void after(void *const *, int64_t, int64_t, int64_t, const float *, int64_t);\n" if sizes else ""
    prototype = text.tile("tile", positions, 2, False).partition("\n")[0]
    return [
        "\n".join([*text.types, after, prototype, ""]),
        ("convolution/convolution_row_tile.h", {f"TILE_{key}": value for key, value in made.items()}),
    ]


ROWS: list[str | Instance] = [
    "static const p_tile p_tiles[] = {tile};\n",
    ("convolution/convolution_rows.h", {"ROWS_PREFIX": "p", "ROWS_ELEMENT": "float", "ROWS_SUMS": 112}),
]
PACKED = (1, 2, 4, 8, 16)
VECTORS = "\n".join(templates.types("p", "float", 16)) + "\n"
RECORDS = """
typedef struct { float key; int64_t index; } KIND_record;
static inline int KIND_less(const KIND_record *x, const KIND_record *y) { return x->key < y->key; }
"""
ELEMENTS = """
typedef uint16_t topk0_element;
static inline int32_t topk0_key(topk0_element e, const int64_t *q) { return e ^ (int32_t)q[4]; }
"""
#: Of each header, or a form of it: C and instances, one after the other, and the functions that are for others.
CASES: dict[str, tuple[list[str | Instance], tuple[str, ...]]] = {
    "sort/sort_keys.h": ([keys(32), keys(64)], ("keys32_sort", "keys32_spread", "keys64_sort", "keys64_spread")),
    "sort/sort_rows.h": (
        [
            keys(32), keys(64),
            by_bits(8, "uint32_t", 0), rows("sort_8", "uint32_t", "keys32"),
            by_bits(64, "uint64_t", 0), rows("sort_64", "uint64_t", "keys64"),
            by_bits(32, "uint64_t", 1), rows("order_32", "uint64_t", "keys64"),
        ],
        ("sort_8_run", "sort_64_run", "order_32_run", "keys32_spread", "keys64_spread"),
    ),
    "sort/sort_by_bits.h": (
        [by_bits(16, "uint32_t", 0), by_bits(16, "uint64_t", 1)],
        tuple(f"{name}_16_{part}" for name in ("sort", "order") for part in ("load_keys", "store", "restore")),
    ),
    "sort/sort_wide.h": (
        [keys(64), *(("sort/sort_wide.h", {"WIDE_PREFIX": f"w{n}", "WIDE_KEYS_PREFIX": "keys64", "WIDE_INDEX_BITS": n})
                     for n in (1, 31))],
        ("w1_argsort", "w31_argsort", "keys64_spread"),
    ),
    "sort/merge_sort.h": (
        [part for kind in "ab" for part in (
            RECORDS.replace("KIND", kind), ("sort/merge_sort.h", {"MERGE_PREFIX": kind, "MERGE_RUN": 12}))],
        ("a_sort", "b_sort"),
    ),
    "sort/topk.h": (
        [topk(8, "int32_t"), topk(64, "int64_t"), ELEMENTS, topk(0, "int32_t")],
        ("topk8_run", "topk64_run", "topk0_run"),
    ),
    "fft/fft_vectors.h": (fft("a", 32), ()),
    "fft/fft_moves.h": (fft("a", 64, "moves"), FFT_MOVES),
    "fft/fft_real.h": (fft("a", 32, "real"), ("a_r2c_rows", "a_c2r_rows", "a_r2c_line", "a_c2r_line")),
    "fft/fft_lines.h": (fft("a", 64, "moves", "lines"), ("a_transform_rows", "a_transform_line", *FFT_MOVES)),
    "fft/fft.h": (
        [part for prefix, bits in (("a", 32), ("b", 64))
         for part in fft(prefix, bits, "moves", "real", "lines", "stages")],
        ("a_run", "b_run"),
    ),
    "linalg/cholesky.h": (
        cholesky("a", "update_tn solve", 1, 0, TRANSPOSE="cyx_tile_4") + cholesky("b", "copy update_tn solve", 0, 1),
        ("a_part", "b_part"),
    ),
    "linalg/lu.h": (lu("a", 0) + lu("b", 1), ("a_part", "b_part")),
    "linalg/block_reflector.h": (reflectors("update_tn update_nn", 0), ("a_panel", "a_v", "a_t", "a_form", "a_apply")),
    "linalg/qr.h": (
        [*reflectors("copy update_tn update_nn gemv_t rank_1_update", 1),
         ("linalg/qr.h", {"QR_M": 22, "QR_N": 20, "QR_K": 20, "QR_PANELS": 3, "QR_LAST_PHASE": 3})],
        ("a_part",),
    ),
    "linalg/reflector_product.h": (
        [*reflectors("copy update_tn update_nn", 0),
         ("linalg/reflector_product.h", {"QR_M": 22, "QR_N": 20, "QR_K": 20})],
        ("a_part",),
    ),
    "linalg/triangular_solve.h": (
        solve("a", "copy update_tn solve", {"LEFT": 1, "COLUMNS": 0, "BACKWARD": 1, "UNIT": 0})
        + solve("b", "update_tn solve", {"LEFT": 0, "COLUMNS": 1, "BACKWARD": 0, "UNIT": 1}, TRANSPOSE="cyx_tile_4"),
        ("a_part", "b_part"),
    ),
    "linalg/vector_solve.h": (
        solve_vector("a", COLUMNS=0, BACKWARD=1, UNIT=0) + solve_vector("b", COLUMNS=1, BACKWARD=0, UNIT=1),
        ("a_part", "b_part"),
    ),
    "loops/strided_copy.h": (
        [("loops/strided_copy.h", {"COPY_PREFIX": f"copy{n}", "COPY_BYTES": n, "COPY_MAX_RANK": 8,
                             "COPY_TRANSPOSE(to, to_step, from, step, rows, columns)":
                             "for (int64_t y = 0; y < (rows); ++y) for (int64_t x = 0; x < (columns); ++x) "
                             "(to)[y * (to_step) + x] = (from)[x * (step) + y]"})
         for n in (1, 2, 4, 8, 16)],
        tuple(f"copy{n}_run" for n in (1, 2, 4, 8, 16)),
    ),
    "compaction/compact_elements.h": (
        [packed("a", n) for n in PACKED] + [packed("a_indices", n, 1) for n in (4, 8)],
        (*(f"a_{n}_pack" for n in PACKED), "a_indices_4_pack", "a_indices_8_pack"),
    ),
    "compaction/compact.h": (
        [part for prefix in "ab" for part in (
            *(packed(prefix, n) for n in PACKED), *(packed(f"{prefix}_indices", n, 1) for n in (4, 8)),
            ("compaction/compact.h", {"COMPACT_PREFIX": prefix}))],
        ("a_run", "b_run"),
    ),
    "loops/map_blocks.h": (
        [("loops/map_blocks.h", {"MAP_PREFIX": prefix, "MAP_BLOCK": 64}) for prefix in "ab"], ("a_run", "b_run"),
    ),
    "loops/compare_words.h": (
        [("loops/compare_words.h", {
            "WORDS_NAME": f"{name}_less", "WORDS_COUNT": 64, "WORDS_TYPE": name, "WORDS_OPERATOR": "<",
        }) for name in ("double", "int64_t")],
        ("double_less", "int64_t_less"),
    ),
    "reduce/first_extreme.h": (
        [("reduce/first_extreme.h", {
            "FIRST_PREFIX": prefix, "FIRST_TYPE": "float", "FIRST_MEMORY": "float", "FIRST_MASK": "int32_t",
            "FIRST_PLACE": "int32_t", "FIRST_BEFORE(x, y)": "((x) > (y))",
        }) for prefix in "ab"],
        ("a_run", "b_run"),
    ),
    "reduce/reduce.h": (
        [("reduce/reduce.h", {
            "REDUCE_NAME": f"{prefix}_run", "REDUCE_MEMORY": "float", "REDUCE_LOCAL": "float", "REDUCE_LOAD(m)": "m",
            "REDUCE_STORE(x)": "x", "REDUCE_COMBINE(x, y)": "(x < y ? x : y)", "REDUCE_UNIT": "initial",
            "REDUCE_RESULT": "x",
        }) for prefix in "ab"],
        ("a_run", "b_run"),
    ),
    "reduce/reduce_lanes.h": (
        ['#include "cyxla/scalar.h"\n#include "cyxla/loops.h"\n', *(("reduce/reduce_lanes.h", {
            "REDUCE_PREFIX": prefix, "REDUCE_REAL": "float", "REDUCE_MEMORY": "float", "REDUCE_LANES": 64,
            "REDUCE_UNIT": "-0.0", "REDUCE_ADD": "cyx_lanes_add_f32", "REDUCE_FOLD": "cyx_fold_add_f32",
            "REDUCE_COMBINE(x, y)": "x + y",
        }) for prefix in "ab")],
        ("a_run", "b_run"),
    ),
    "reduce/reduce_vectors.h": (
        [("reduce/reduce_vectors.h", {
            "REDUCE_PREFIX": prefix, "REDUCE_MEMORY": "float", "REDUCE_LOAD(m)": "m", "REDUCE_STORE(x)": "x",
            "REDUCE_KIND": kind, "REDUCE_REAL": "float", "REDUCE_BITS": "int32_t", "REDUCE_BEFORE(x, y)": "((x) > (y))",
            "REDUCE_FIRST": "-__builtin_inff()", "REDUCE_BETTER_ZERO": "0.0",
            "REDUCE_BETTER_SIGN(x)": "(~(x))",
            "REDUCE_TYPE0": "float", "REDUCE_UNIT0": "0", "REDUCE_TYPE1": "int8_t", "REDUCE_UNIT1": "0",
            "REDUCE_UPDATE0(v, w, x)": "v > x ? v : x", "REDUCE_UPDATE1(v, w, x)": "w | (v > x)",
            "REDUCE_MERGE0(v, w, x, y)": "v > x ? v : x", "REDUCE_MERGE1(v, w, x, y)": "w | y",
            "REDUCE_TOTAL(v, w)": "w ? 0 : v", "REDUCE_COMBINE(x, y)": "(x > y ? x : y)",
        }) for kind, prefix in enumerate("abc")],
        ("a_run", "b_run", "c_run"),
    ),
    "reduce/scan.h": (
        [("reduce/scan.h", {
            "SCAN_PREFIX": prefix, "SCAN_MEMORY": "float", "SCAN_LOAD(m)": "m", "SCAN_TYPE": "float",
            "SCAN_UNIT": "0", "SCAN_UPDATE(v, x)": "v + x", "SCAN_RESULT(init, v)": "(init + v)",
        }) for prefix in "ab"],
        ("a_run", "b_run"),
    ),
    "entry/profile.h": (
        [("entry/profile.h", {
            "PROFILE_CLOCK": 2, "PROFILE_CLOCK_ID": 1, "PROFILE_MEMORY": 3, "PROFILE_SITES": 5,
            "PROFILE_SITE_FIELDS": 2, "PROFILE_EVENTS": 100, "PROFILE_EVENT_FIELDS": 4,
        })],
        ("profile_clock", "profile_add"),
    ),
    "calls/call_status.h": (
        [("calls/call_status.h", {"CALL_PREFIX": prefix}) for prefix in "ab"], ("a_status", "b_status"),
    ),
    "rng/threefry.h": (
        [("rng/threefry.h", {"THREEFRY_PREFIX": prefix}) for prefix in "ab"], ("a_threefry", "b_threefry"),
    ),
    "rng/philox.h": ([("rng/philox.h", {"PHILOX_PREFIX": prefix}) for prefix in "ab"], ("a_philox", "b_philox")),
    "dot/dot_tile.h": (
        [
            VECTORS, *tile("any"), *tile("columns", COLUMNS=1), *tile("prefetching", PREFETCH=1),
            *tile("known", {"count": 8, "right_stride": 16}, ROWS=14, VECTORS=1), *tile("cut", {"count": 8}, TAIL=3),
            *tile("linked", {"right_stride": 9}, CONSTANT=2, TAIL=1, PREFETCH=1),
        ],
        ("any", "columns", "prefetching", "known", "cut", "linked"),
    ),
    "dot/dot.h": ([VECTORS, *dot(templates.ANY_UNITS, templates.PACK_ANY, constant=False)], ("p_run",)),
    "dot/dot.h, panels": ([VECTORS, *dot(templates.PANEL_UNITS, templates.PACK_ROWS)], ("p_run",)),
    "dot/dot.h, panels, packed": ([VECTORS, *dot(templates.PANEL_UNITS, templates.PACK_ANY)], ("p_run",)),
    "dot/dot_live.h": (
        [
            VECTORS, *dot(templates.ANY_UNITS, templates.PACK_ANY, constant=False),
            ("dot/dot_live.h", {"LIVE_PREFIX": "p"}),
        ],
        ("p_run", "p_of_part"),
    ),
    "dot/inner_products.h": (inner_products(k=9), ("tile",)),
    "dot/row_combination.h": (row_sums(k=9), ("tile",)),
    "dot/row_combinations.h": (row_sums(several=True, k=9, m=3), ("tile",)),
    "dot/dot_few_rows.h": (inner_products(), ("p_run",)),
    "dot/dot_few_rows.h, constant": (inner_products(sums=6, k=9, m=2, width=3), ("p_run",)),
    "dot/dot_row_sums.h": (row_sums(), ("p_run",)),
    "dot/dot_row_sums.h, constant": (
        row_sums(1, several=True, k=99, m=2, width=9, parts=2, units=2, tasks=2), ("p_run",),
    ),
    "dot/one_pass.h": ([ONE_PASS, ("dot/one_pass.h", {"PASS_PREFIX": "p"})], ("p_pass_run",)),
    "convolution/convolution_tile.h": (convolution("tile", rank=1), ("tile",)),
    "convolution/convolution_tile.h, constant": (
        convolution("tile", rank=1, depth=9, block_depth=3, blocks=3), ("tile",),
    ),
    "convolution/convolution_window.h": (
        convolution("window", rank=8), ("p_origins_8", "p_addresses_8", "p_has_nans_8"),
    ),
    "convolution/convolution_window.h, dilated": (
        convolution("window", rank=2, dilated=1, base_dilation0=2, base_dilation1=1, leaves=1),
        ("p_origins_2", "p_addresses_2", "p_has_nans_2"),
    ),
    "convolution/convolution.h": (convolution("tile", "window", "whole", rank=3), ("p_run",)),
    "convolution/convolution.h, padded": (
        convolution("tile", "window", "whole", rank=2, chunk=12, rows=7, width=16, blocks=2, depth=4, leaves=1),
        ("p_run",),
    ),
    "convolution/convolution.h, constant": (
        convolution("tile", "window", "whole", rank=2, chunk=12, rows=7, width=16, blocks=1, depth=4, block_depth=4),
        ("p_run",),
    ),
    "convolution/convolution_row_tile.h": (convolution_tile(14), ("tile",)),
    "convolution/convolution_row_tile.h, depthwise": (convolution_tile(1, DEPTHWISE=1), ("tile",)),
    "convolution/convolution_row_tile.h, constant": (convolution_tile(2, CONSTANT=1, RANK=8, CHAIN=512), ("tile",)),
    "convolution/convolution_row_tile.h, dilated": (convolution_tile(1, CONSTANT=1, RANK=1, DILATED=1), ("tile",)),
    "convolution/convolution_rows.h": (convolution_tile(1) + ROWS, ("p_run",)),
}  # fmt: skip


def source(parts: list[str | Instance], used: tuple[str, ...]) -> str:
    """Return a C file that includes the headers of a case and takes the addresses of the functions that it names."""
    text = '#include "cyxla/abi.h"\n#include "cyxla/compiler.h"\n'
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        header, parameters = part
        text += "".join(f"#define {name} {value}\n" for name, value in parameters.items())
        text += f'#include "cyxla/kernels/{header}"\n'
    pointers = ", ".join(f"(void (*)(void)){name}" for name in used)
    return f"{text}extern void (*const used[])(void);\nvoid (*const used[])(void) = {{{pointers}}};\n"


def test_every_header_has_a_case():
    headers = {path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.*")}
    assert headers == {name.split(",")[0] for name in CASES}


LOWEST, *_, HIGHEST = ISA_FEATURES


@pytest.mark.slow_after(40)
@pytest.mark.parametrize("isa", [*ISA_FEATURES])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("header", CASES)
def test_headers_compile_alone(header, compiler, isa, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    # Levels in between differ only in features of these, so their machine code is not needed.
    output = ["-c", "-o", str(tmp_path / "made.o")] if isa in (LOWEST, HIGHEST) else ["-fsyntax-only"]
    command = [compiler, *STRICT, *isa_flags(isa), f"-I{INCLUDE}", *output, "-x", "c", "-"]
    made = subprocess.run(command, input=source(*CASES[header]), text=True, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("isa", [LOWEST, HIGHEST])
@pytest.mark.parametrize("header", CASES)
def test_instances_are_what_a_preprocessor_makes(header, isa):
    parts, used = CASES[header]
    instances = [part if isinstance(part, str) else instantiate(part[0], **part[1]) for part in parts]
    includes = re.findall(r"^#include .*\n", "".join(map(text_of, parts)), re.MULTILINE)
    assert tokens(source([*includes, *instances], used), isa) == tokens(source([*includes, *parts], used), isa)


def text_of(part: str | Instance) -> str:
    """Return the text of the header of an instance; nothing for other text."""
    if isinstance(part, str):
        return ""
    return (KERNELS / part[0]).read_text(encoding="utf-8").replace('"../../', '"cyxla/')


def tokens(text: str, isa: str) -> list[str]:
    """Return the tokens of a C text behind the preprocessor."""
    command = ["gcc", "-E", "-P", *isa_flags(isa), f"-I{INCLUDE}", "-x", "c", "-"]
    made = subprocess.run(command, input=text, text=True, capture_output=True, check=True)
    return re.findall(r"\w+|[^\w\s]", made.stdout)


def test_constants_stand_in_the_text():
    parameters = {"INNER_NAME": "f", "INNER_PREFIX": "p", "INNER_ELEMENT": "float", "INNER_LANES": 4,
                  "INNER_COLUMNS": 2, "INNER_PREFETCH": 0, "INNER_CONSTANT": 1}  # fmt: skip
    text = instantiate("dot/inner_products.h", {"k": 9, "right_column_stride": -3}, **parameters)
    assert "count = 9LL, stride = (-3LL)" in text
    assert "s->" not in text
    assert "count = 9LL, stride = s->right_column_stride" in instantiate("dot/inner_products.h", {"k": 9}, **parameters)


#: Headers whose parameters others need, and those among these that come last and undefine them.
SHARED_PARAMETERS = {
    "fft/fft_vectors.h": ("fft/fft.h",),
    "linalg/block_reflector.h": ("linalg/qr.h", "linalg/reflector_product.h"),
}


@pytest.mark.parametrize("header", CASES)
def test_headers_undefine_their_parameters(header):
    for part in CASES[header][0]:
        if not isinstance(part, str):
            name, parameters = part
            for last in SHARED_PARAMETERS.get(name, (name,)):
                assert all(f"\n#undef {parameter.partition('(')[0]}\n" in instantiate(last) for parameter in parameters)
            assert "#include" not in instantiate(name)


# --- C in strings of Python -----------------------------------------------------------------------------------------

LONG = 10  # lines, without empty ones
#: Lines of C in strings longer than that, by file: those of families that have no headers yet, C that differs by
#: program, and a linker script.
ELSEWHERE = {
    "calls/c_call.py": 13, "native/toolchain.py": 22,
}  # fmt: skip


def strings(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module but its docstrings; what is put into them at run time is one word."""
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside | alone:
            yield node.value


def c_lines(text: str) -> int:
    """Return the number of lines of a string if most of them end as C does."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return len(lines) if sum(line.endswith((";", "{", "}", "\\")) for line in lines) * 2 > len(lines) else 0


def test_long_c_stands_in_headers():
    found = {}
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lengths = [n for n in map(c_lines, strings(tree)) if n > LONG]
        if lengths:
            found[path.relative_to(SOURCES).as_posix()] = sum(lengths)
    assert {file: lines for file, lines in found.items() if lines > ELSEWHERE.get(file, 0)} == {}
