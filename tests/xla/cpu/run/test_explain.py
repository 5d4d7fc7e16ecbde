"""An explanation lists each kernel with its reason, figures and refusals, as text and as dataclasses."""

# ruff: noqa: E501  programs read best a line at a time

import json

import pytest

import cyxla
from cyxla.xla.service.explanation import Explanation
from cyxla.xla.service.operation_count import operations
from cyxla.xla.service.refusal import Refusal

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
odd { a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] multiply(a, b) ROOT c = f32[] subtract(d, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
quotient { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] divide(a, b) }
close { a = f32[] parameter(0) b = f32[] parameter(1) n = f32[] abs(a) m = f32[] multiply(b, b) ROOT c = pred[] compare(n, m), direction=LT }
small { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9) ROOT c = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[4] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one) y = f32[4] reverse(x), dimensions={0} z = f32[4] add(x, y) ROOT t = (s32[], f32[4]) tuple(j, z) }
"""
X = "x = f32[64,256] parameter(0) zero = f32[] constant(0) "
LOOP = "i = s32[] constant(0) s = (s32[], f32[4]) tuple(i, x) ROOT w = (s32[], f32[4]) while(s), condition=small, body=next"
KIB = 1 << 10

#: name: (program, kernels: (kind, tier, bytes read, bytes written, operations, words of `why`))
KERNELS = {
    "one instruction": (
        X + "ROOT t = f32[64,256] tanh(x)",
        [("loop", "compiled", 64 * KIB, 64 * KIB, 16 * KIB, "a tanh is one loop over f32[64,256]")],
    ),
    "a chain": (
        X + "t = f32[64,256] tanh(x) n = f32[64,256] cosine(t) ROOT a = f32[64,256] add(n, x)",
        [("loop", "compiled", 64 * KIB, 64 * KIB, 48 * KIB, "3 instructions are computed element by element in one loop over f32[64,256]; only the last is stored")],
    ),
    "two results": (
        X + "t = f32[64,256] tanh(x) n = f32[64,256] negate(t) ROOT r = (f32[64,256], f32[64,256]) tuple(t, n)",
        [("loop", "compiled", 64 * KIB, 128 * KIB, 32 * KIB, "the loop stores 2 of the results")],
    ),
    "a reduction": (
        X + "t = f32[64,256] tanh(x) r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add ROOT n = f32[64] negate(r)",
        [("reduce", "compiled", 64 * KIB, 256, 32 * KIB + 64, "1 instruction is computed as the reduce combines their elements; 1 instruction is computed from its results")],
    ),
    "rows": (
        X + "e = f32[64,256] exponential(x) r = f32[64] reduce(e, zero), dimensions={1}, to_apply=add b = f32[64,256] broadcast(r), dimensions={0} ROOT d = f32[64,256] divide(e, b)",
        [("row", "compiled", 64 * KIB, 64 * KIB, 48 * KIB, "3 groups iterate over 64 rows of 256 elements, which stay in the L1 cache")],
    ),
    "a dot with an epilogue": (
        X + "y = f32[256,128] parameter(1) d = f32[64,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[64,128] tanh(d)",
        [("dot", "compiled", 192 * KIB, 32 * KIB, 2 * 64 * 128 * 256 + 64 * 128, "1 instruction is the epilogue of the dot")],
    ),
    "a dot alone": (
        X + "ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        [("dot", "prebuilt", 64 * KIB, 16 * KIB, 2 * 64 * 64 * 256, "a dot has a kernel of its own")],
    ),
    "a kernel of its own": (
        X + "ROOT s = f32[64,256] sort(x), dimensions={1}, to_apply=less",
        [("sort", "prebuilt", 64 * KIB, 64 * KIB, 8 * 16 * KIB, "a sort has a kernel of its own")],
    ),
    "an update": (
        X + "i = s32[] parameter(1) u = f32[1,256] parameter(2) n = f32[1,256] negate(u) ROOT d = f32[64,256] dynamic-update-slice(x, n, i, i)",
        [("loop", "compiled", 64 * KIB + 1024 + 4, 64 * KIB, 256, "the elements of the update are stored into the array; 1 instruction is computed as the elements are stored")],
    ),
    "a loop in locals": (
        "x = f32[4] parameter(0) " + LOOP,
        [("small loop", "compiled", 16, 20, 9 * 6, "all iterations of the while run in one kernel")],
    ),
    "two parts": (
        "x = f32[300,3000] parameter(0) zero = f32[] constant(0) t = f32[300,3000] tanh(x) ROOT r = f32[3000] reduce(t, zero), dimensions={0}, to_apply=add",
        [("reduce", "compiled", 3600000, None, 1800000, "first part of: "), ("reduce", "compiled", None, 12000, None, "last part of: ")],
    ),
    "small ones together": (
        "".join(f"p{k} = f32[{k + 2}] parameter({k}) n{k} = f32[{k + 2}] tanh(p{k}) " for k in range(3))
        + "ROOT t = (f32[2], f32[3], f32[4]) tuple(n0, n1, n2)",
        [("bundle", "compiled", 4 * 9, 4 * 9, 9, "3 small kernels that do not depend on each other are one call")],
    ),
}  # fmt: skip

#: name: (program, options, refusals)
REFUSALS = {
    "a result": (X + "ROOT t = f32[64,256] tanh(x)", {}, [Refusal("fusion", "tanh f32[64,256]", "it is a result")]),
    "of a dot": (
        X + "y = f32[256,64] parameter(1) d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT r = f32[64] reduce(d, zero), dimensions={0}, to_apply=add", {},
        [Refusal("fusion", "dot f32[64,64]", "it is read by a reduce")],
    ),
    "into a sort": (
        X + "t = f32[64,256] tanh(x) ROOT s = f32[64,256] sort(t), dimensions={1}, to_apply=less", {},
        [Refusal("fusion", "tanh f32[64,256]", "a sort reads its operands from memory")],
    ),
    "of a sort": (
        X + "s = f32[64,256] sort(x), dimensions={1}, to_apply=less ROOT t = f32[64,256] tanh(s)", {},
        [Refusal("fusion", "sort f32[64,256]", "a sort has no epilogue")],
    ),
    "read by two": (
        X + "t = f32[64,256] tanh(x) r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add c = f32[256] reduce(t, zero), dimensions={0}, to_apply=add ROOT p = (f32[64], f32[256]) tuple(r, c)", {},
        [Refusal("fusion", "tanh f32[64,256]", "2 kernels read it, which cannot be one, since they do not all iterate over its elements in their order")],
    ),
    "recomputed": (
        "x = f32[64] parameter(0) t = f32[64] tanh(x) b = f32[64,256] broadcast(t), dimensions={0} i = s32[64,256] parameter(1) c = f32[64,256] convert(i) r = f32[256,64] transpose(b), dimensions={1,0} v = f32[256,64] reshape(c) ROOT a = f32[256,64] add(r, v)", {},
        [Refusal("fusion", "tanh f32[64]", "each element is read several times and too costly to recompute")],
    ),
    "rows that are read across": (
        X + "e = f32[64,256] exponential(x) r = f32[64] reduce(e, zero), dimensions={1}, to_apply=add b = f32[256,64] broadcast(r), dimensions={1} y = f32[256,64] parameter(1) ROOT s = f32[256,64] subtract(y, b)", {},
        [
            Refusal("fusion", "reduce f32[64]", "its elements are not read in their order"),
            Refusal("row fusion", "reduce f32[64] and subtract f32[256,64]", "it reads elements of other rows"),
        ],
    ),
    "few rows": (
        "x = f32[2,500000] parameter(0) zero = f32[] constant(0) e = f32[2,500000] exponential(x) r = f32[2] reduce(e, zero), dimensions={1}, to_apply=add b = f32[2,500000] broadcast(r), dimensions={0} ROOT d = f32[2,500000] divide(e, b)", {},
        [
            Refusal("row fusion", "exponential f32[2,500000] and reduce f32[2]", "too few rows for all cores"),
            Refusal("row fusion", "reduce f32[2] and divide f32[2,500000]", "too few rows for all cores"),
        ],
    ),
    "other values than those of rows": (
        X + "r = f32[64] reduce(x, zero), dimensions={1}, to_apply=add i = s32[9] parameter(1) g = f32[9] gather(r, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1} ROOT q = f32[9] negate(g)", {},
        [
            Refusal("row fusion", "reduce f32[64] and negate f32[9]", "it computes values that are neither one for each row nor one for each element of a row"),
            Refusal("horizontal fusion", "negate f32[9]", "it depends on the small kernels before it"),
        ],
    ),
    "an array in common": (
        X + "t = f32[64,256] tanh(x) n = f32[64,256] negate(x) ROOT p = (f32[64,256], f32[64,256]) tuple(t, n)", {},
        [Refusal("fusion", "tanh f32[64,256] and negate f32[64,256]", "they share no value that is computed, only an array in memory: parameter f32[64,256]")],
    ),
    "small kernels, one too many": (
        " ".join(f"p{k} = f32[{k + 2}] parameter({k}) n{k} = f32[{k + 2}] negate(p{k}) " for k in range(33))
        + f"ROOT t = ({', '.join(f'f32[{k + 2}]' for k in range(33))}) tuple({', '.join(f'n{k}' for k in range(33))})", {},
        [Refusal("horizontal fusion", "negate f32[34]", "the kernel before it has 32 parts")],
    ),
    "behind a barrier": (
        X + "t = f32[64,256] tanh(x) b = f32[64,256] opt-barrier(t) ROOT n = f32[64,256] negate(b)", {},
        [Refusal("fusion", "tanh f32[64,256]", "an opt-barrier takes it from memory")],
    ),
    "an argument stays": (
        X + "ROOT t = f32[64,256] tanh(x)", {},
        [Refusal("in place", "tanh f32[64,256]", "its operand is an argument that is not donated")],
    ),
    "a donated argument": (X + "ROOT t = f32[64,256] tanh(x)", {"donate": (0,)}, []),
    "a donation without a result": (
        X + "ROOT r = f32[64] reduce(x, zero), dimensions={1}, to_apply=add", {"donate": (0,)},
        [Refusal("donation", "array 0 of the arguments", "no result is left that has its size")],
    ),
    "read again": (
        X + "s = f32[64,256] sort(x), dimensions={1}, to_apply=less t = f32[64,256] tanh(s) q = f32[64,256] sort(t), dimensions={0}, to_apply=less ROOT a = f32[64,256] atan2(s, q)", {},
        [Refusal("in place", "tanh f32[64,256]", "its operand is read again later")],
    ),
    "in order": (
        X + "ROOT r = f32[64] reduce(x, zero), dimensions={1}, to_apply=odd", {},
        [Refusal("vectorisation", "reduce f32[64]", "its computation is applied in the order of the elements")],
    ),
    "a function without vectors": (
        X + "t = f32[64,256] negate(x) ROOT r = f32[64,256] remainder(t, x)", {},
        [Refusal("vectorisation", "remainder f32[64,256]", "the number of its steps depends on the elements")],
    ),
    "in a map": (
        "x = s32[64] parameter(0) y = s32[64] parameter(1) ROOT r = s32[64] map(x, y), dimensions={0}, to_apply=quotient", {},
        [Refusal("vectorisation", "divide s32[64]", "x86-64 divides integers one at a time")],
    ),
    "in a reduction": (
        X + "t = f32[64,256] remainder(x, x) ROOT r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add", {},
        [Refusal("vectorisation", "remainder f32[64,256]", "the number of its steps depends on the elements")],
    ),
    "in an epilogue": (
        X + "d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} ROOT r = f32[64,64] remainder(d, d)", {},
        [Refusal("vectorisation", "remainder f32[64,64]", "the number of its steps depends on the elements")],
    ),
    "complex functions": (
        "x = c64[64] parameter(0) ROOT r = c64[64] exponential(x)", {},
        [Refusal("vectorisation", "exponential c64[64]", "it branches on the values of complex numbers")],
    ),
    "a large stride": (
        X + "s = f32[64,8] slice(x), slice={[0:64],[0:256:32]} ROOT r = f32[64,8] negate(s)", {},
        [Refusal("vectorisation", "parameter f32[64,256]", "its elements are loaded one at a time, 128 bytes apart")],
    ),
    "gathered bytes": (
        "x = u8[100] parameter(0) i = s32[64] parameter(1) ROOT r = u8[64] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}", {},
        [Refusal("vectorisation", "parameter u8[100]", "elements of 8 bits at indices from an array are loaded one at a time")],
    ),
    "one element": (
        "x = f32[] parameter(0) ROOT r = f32[] tanh(x)", {},
        [Refusal("vectorisation", "tanh f32[]", "it has a single element")],
    ),
    "a short reduction": (
        "x = f32[3,3] parameter(0) zero = f32[] constant(0) ROOT r = f32[3] reduce(x, zero), dimensions={1}, to_apply=add", {},
        [Refusal("vectorisation", "reduce f32[3]", "its rows and columns are too short for vectors")],
    ),
    "a scan": (
        X + "ROOT r = f32[64,256] reduce-window(x, zero), window={size=1x256 pad=0_0x255_0}, to_apply=add", {},
        [Refusal("vectorisation", "reduce-window f32[64,256]", "each result depends on the one before")],
    ),
    "a carried state": (
        "x = f32[4] parameter(0) " + LOOP, {},
        [Refusal("vectorisation", "while (s32[], f32[4])", "each iteration depends on the one before")],
    ),
    "a scatter": (
        "x = f32[64] parameter(0) i = s32[9,1] parameter(1) u = f32[9] parameter(2) ROOT r = f32[64] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", {},
        [Refusal("vectorisation", "scatter f32[64]", "updates are combined one at a time, since several may have the same index")],
    ),
    "words that are stored apart": (
        "s = u64[2] parameter(0) ROOT r = (u64[2], u32[4096]) rng-bit-generator(s), algorithm=rng_three_fry", {},
        [Refusal("vectorisation", "rng-bit-generator (u64[2], u32[4096])", "the two words of a block are stored apart, at indices that take divisions")],
    ),
    "random numbers": (
        "a = f32[] constant(0) b = f32[] constant(1) ROOT r = f32[64] rng(a, b), distribution=rng_uniform", {},
        [Refusal("vectorisation", "rng f32[64]", "each element takes the rounds of the generator, in a loop of their own")],
    ),
    "a comparator of its own": (
        X + "ROOT s = f32[64,256] sort(x), dimensions={1}, to_apply=close", {},
        [Refusal("vectorisation", "sort f32[64,256]", "its comparator takes two records at a time, and follows no keys")],
    ),
    "little work": (
        "x = f32[4,4] parameter(0) ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {},
        [Refusal("prebuilt", "dot f32[4,4]", "with less than 500 ns of work, sizes known at compile time make it faster")],
    ),
    "a loop of kernels": (
        "x = f32[4] parameter(0) " + LOOP.replace("body=next", "body=sorting"), {},
        [Refusal("loop", "while (s32[], f32[4])", "not one kernel with the state in locals, since: sort has a kernel of its own")],
    ),
    "with an epilogue": (
        KERNELS["a dot with an epilogue"][0], {},
        [Refusal("prebuilt", "dot f32[64,128]", "the library has no function that takes its epilogue")],
    ),
    "of the whole program": (
        X + "ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", {},
        [Refusal("prebuilt", "the program", "not for prebuilt functions alone: dot to f32[64,64]")],
    ),
}  # fmt: skip


def program(body):
    sorting = (
        COMPUTATIONS.splitlines()[-1]
        .replace("next {", "sorting {")
        .replace("reverse(x), dimensions={0}", "sort(x), dimensions={0}, to_apply=less")
    )
    return f"HloModule m {COMPUTATIONS} {sorting} ENTRY e {{ {body} }}"


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    body, wanted = KERNELS[name]
    found = cyxla.compile(program(body)).explanation().kernels
    assert len(found) == len(wanted)
    for kernel, (kind, tier, *sizes, why) in zip(found, wanted, strict=True):
        assert (kernel.kind, kernel.tier) == (kind, tier)
        facts = (kernel.bytes_read, kernel.bytes_written, kernel.operations)
        assert [f for f, s in zip(facts, sizes, strict=True) if s is not None] == [s for s in sizes if s is not None]
        assert why in kernel.why
        assert kernel.tasks > 0
        assert kernel.instructions


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    body, options, wanted = REFUSALS[name]
    executable = cyxla.compile(program(body), **options)
    explanation = executable.explanation()
    text = executable.explain()
    for refusal in wanted:
        assert refusal in explanation.refusals
        assert refusal.reason in text
    assert name != "a donated argument" or not any(r.stage == "in place" for r in explanation.refusals)


#: Programs whose loops all are vectorised.
VECTORS = {
    "element by element": X + "ROOT t = f32[64,256] tanh(x)",
    "hoisted": "x = f32[64] parameter(0) y = f32[64,256] parameter(1) r = f32[64] remainder(x, x) b = f32[64,256] broadcast(r), dimensions={0} ROOT a = f32[64,256] add(b, y)",
    "by a constant": "x = s32[64] parameter(0) k = s32[] constant(3) b = s32[64] broadcast(k), dimensions={} ROOT r = s32[64] divide(x, b)",
    "columns in order": X + "ROOT r = f32[256] reduce(x, zero), dimensions={0}, to_apply=odd",
    "a scan of columns": X + "ROOT r = f32[64,256] reduce-window(x, zero), window={size=64x1 pad=63_0x0_0}, to_apply=add",
    "transposed in tiles": X + "ROOT t = f32[256,64] transpose(x), dimensions={1,0}",
    "gathered rows": X + "i = s32[9] parameter(1) ROOT r = f32[9,256] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}",
    "random bits": "s = u64[3] parameter(0) ROOT r = (u64[3], u32[4096]) rng-bit-generator(s), algorithm=rng_philox",
    "rows": KERNELS["rows"][0],
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_loops_of_vectors_are_not_refused(name):
    refusals = cyxla.compile(program(VECTORS[name])).explanation().refusals
    assert [r for r in refusals if r.stage == "vectorisation"] == []


@pytest.mark.parametrize(
    "variable, value, reason",
    [("CYXLA_PREBUILT", "0", "CYXLA_PREBUILT=0"), ("CYXLA_SANITIZE", "undefined", "CYXLA_SANITIZE is set")],
)
def test_settings_that_keep_prebuilt_functions_out(variable, value, reason, monkeypatch):
    from cyxla.xla.cpu.lowering import emit
    from cyxla.xla.cpu.run.explain import explain
    from cyxla.xla.hlo import parse_module
    from cyxla.xla.service import CompileOptions

    monkeypatch.setenv(variable, value)
    module = parse_module(program(KERNELS["a kernel of its own"][0]))
    explanation = explain(*emit(module), module, CompileOptions())
    assert Refusal("prebuilt", "sort f32[64,256]", reason) in explanation.refusals


def test_shared_kernels_are_reported_once():
    body = "x = f32[640] parameter(0) s = f32[640] sort(x), dimensions={0}, to_apply=less n = f32[640] negate(s) q = f32[640] sort(n), dimensions={0}, to_apply=less ROOT r = f32[640] negate(q)"
    kernels = cyxla.compile(program(body)).explanation().kernels
    assert [(k.kind, k.calls) for k in kernels] == [("sort", 2), ("loop", 2)]


def test_text_and_fields_say_the_same():
    executable = cyxla.compile(program(KERNELS["rows"][0]))
    explanation = executable.explanation()
    assert executable.explain() == str(explanation)
    read = json.loads(json.dumps(explanation.as_dict()))
    assert read["kernels"][0]["why"] == explanation.kernels[0].why
    assert [Refusal(**r) for r in read["refusals"]] == list(explanation.refusals)


def test_the_interpreter_reports_instructions():
    body = (
        X
        + "t = f32[64,256] tanh(x) u = f32[64,256] tanh(t) ROOT r = f32[64] reduce(u, zero), dimensions={1}, to_apply=add"
    )
    explanation = cyxla.compile(program(body), platform="interpreter").explanation()
    assert (explanation.platform, explanation.tier) == ("interpreter", "interpreter")
    assert [(k.name, k.tier, k.calls, k.bytes_read, k.operations) for k in explanation.kernels] == [
        ("tanh", "interpreter", 2, 64 * KIB, 16 * KIB),
        ("reduce", "interpreter", 1, 64 * KIB + 4, 16 * KIB),
    ]


def test_prebuilt_programs_report_functions():
    from cyxla.xla.cpu.prebuilt.program import prebuilt_program
    from cyxla.xla.hlo import parse_module
    from cyxla.xla.service import CompileOptions

    body = "x = f32[8,16] parameter(0) t = f32[8,16] tanh(x) u = f32[8,16] tanh(t) ROOT r = f32[16,8] transpose(u), dimensions={1,0}"
    explanation = prebuilt_program(parse_module(program(body)), CompileOptions(), 1e9).explanation()
    assert explanation.tier == "kernels"
    assert [(k.name, k.kind, k.tier, k.calls, k.bytes_read, k.operations) for k in explanation.kernels] == [
        ("map_tanh_f32", "tanh", "prebuilt", 2, 512, 128),
        ("move_4", "transpose", "prebuilt", 1, 512, 0),
    ]


def test_platforms_without_kernels_have_a_summary():
    from cyxla.xla.service import Executable

    class Toy(Executable):
        platform = "toy"

        def __call__(self, *args, out=None):
            return args

        def hlo(self, stage="optimized"):
            return ""

        def explain(self):
            return "a toy"

    assert Toy().explanation() == Explanation("toy", "interpreter", "a toy")


COUNTS = {
    "x = f32[4,8] parameter(0) ROOT r = f32[4,8] copy(x)": 0,
    "x = f32[4,8] parameter(0) ROOT r = f32[8,4] transpose(x), dimensions={1,0}": 0,
    "x = c64[4,8] parameter(0) ROOT r = c64[4,8] fft(x), fft_type=FFT, fft_length={8}": 5 * 32 * 3,
    "x = f32[4,4] parameter(0) ROOT r = f32[4,4] cholesky(x)": 16 * 4 // 3,
    "x = f32[2,8,3] parameter(0) w = f32[2,3,5] parameter(1) ROOT r = f32[2,7,5] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f": 2 * 70 * 6,
    "x = f32[9] parameter(0) z = f32[] constant(0) ROOT r = f32[7] reduce-window(x, z), window={size=3}, to_apply=add": 21,
    "x = f32[4] parameter(0) " + LOOP: 9 * 6,
}  # fmt: skip


@pytest.mark.parametrize("body", COUNTS)
def test_operations(body):
    from cyxla.xla.hlo import parse_module

    assert operations(parse_module(program(body)).entry.root) == COUNTS[body]


def test_a_dump_holds_the_explanation(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    explanation = cyxla.compile(program(KERNELS["rows"][0])).explanation()
    (folder,) = tmp_path.iterdir()
    assert (folder / "explain.txt").read_text() == f"{explanation}\n"
    assert json.loads((folder / "explain.json").read_text()) == json.loads(json.dumps(explanation.as_dict()))
