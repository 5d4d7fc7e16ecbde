"""Libraries built ahead of time: the same bits as jit, the C interface, the same bytes each time."""

import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from support.builds.ahead_of_time import LEVEL, assert_same_bits, needs_gcc, run_command, shared

import cyxla
from cyxla import aot
from cyxla.aot import build, sources
from cyxla.aot.emission import default_levels
from cyxla.aot.loader import Function, Run
from cyxla.errors import CancelledError, InvalidArgumentError, OutOfRangeError, UnimplementedError
from cyxla.xla.cpu.native import split_units

RNG = np.random.default_rng(0)


def newton(x):
    """Square roots by Newton's method."""
    y, k = x + 1, 0
    while np.max(np.abs(y * y - x)) > 1e-6 and k < 50:
        y = (y + x / y) / 2
        k += 1
    return y, k


def layers(x, w, b):
    for _ in range(3):
        x = np.tanh(x @ w + b)
    return x, np.sum(x, axis=0), np.argmax(x)


def statistics(x):
    return {"mean": x.mean(0), "std": x.std(0), "sorted": np.sort(x, axis=0), "sum": np.cumsum(x, axis=1)}


def running(x, y):
    total = np.zeros(3)
    for k in range(x.shape[0]):
        total = np.where(x[k] > y, total + x[k], total * 0.5)
    return total


def bits(x, n):
    return (x << n) ^ (x >> 1), x % 7, x.astype(np.float32) / 3


def narrow(x):
    return (x * x + 1).astype(x.dtype), np.exp(x)


def waves(x):
    return np.fft.fft(x), np.abs(x), np.linalg.solve(np.eye(4) + np.outer(x[:4].real, x[:4].imag), np.ones(4))


def linear_algebra(x):
    return np.linalg.inv(x), np.linalg.det(x), np.linalg.cholesky(x @ x.T + np.eye(6)), np.linalg.qr(x)[1]


def draws(x):
    return x + np.random.default_rng(3).standard_normal(4)


FUNCTIONS = {
    "loop": (newton, RNG.random((5, 7))),
    "matrix products": (layers, *(RNG.random(n, np.float32) for n in ((33, 64), (64, 64), 64))),
    "large products": (lambda x, y: x @ y, RNG.random((300, 400), np.float32), RNG.random((400, 500), np.float32)),
    "sorts and reductions": (statistics, RNG.standard_normal((40, 30))),
    "slices": (running, RNG.standard_normal((9, 3)), np.array(0.1)),
    "integers": (bits, RNG.integers(0, 2**31, 100), np.array(3)),
    "bfloat16": (narrow, RNG.standard_normal(50).astype(ml_dtypes.bfloat16)),
    "float16": (narrow, RNG.standard_normal(50).astype(np.float16)),
    "complex numbers": (narrow, RNG.standard_normal(16) + 1j),
    "booleans": (lambda x: (~x, x.any(), np.count_nonzero(x)), RNG.random((3, 3)) > 0.5),
    "no dimensions": (lambda x: np.sin(x) + 1, np.array(0.5)),
    "no elements": (lambda x: (x * 2, x.sum(0)), np.zeros((0, 4))),
    "no arguments": (lambda: np.arange(5) * 2.5,),
    "nan and inf": (lambda x: (np.maximum(x, 0), np.sign(x), -x), np.array([np.nan, -np.inf, np.inf, -0.0, 1])),
    "constants": (lambda x: x + np.arange(1000.0), RNG.random(1000)),
    "transforms": (waves, RNG.standard_normal(100) + 1j * RNG.standard_normal(100)),
    "linear algebra": (linear_algebra, RNG.standard_normal((6, 6))),
    "random numbers": (draws, np.ones(4)),
    "convolutions": (lambda x, y: np.convolve(x, y), RNG.standard_normal(50), RNG.standard_normal(9)),
    "reduction of many": (lambda x: (np.exp(x).sum(), x.max(1)), RNG.standard_normal((1000, 1000))),
}  # fmt: skip


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits_as_jit(tmp_path, name):
    function, *arguments = FUNCTIONS[name]
    library = shared(tmp_path, function, *arguments)
    assert_same_bits(library(*arguments), cyxla.compile(function, *arguments)(*arguments))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", [level for level in default_levels() if level <= LEVEL[0]])
def test_same_bits_at_each_level(tmp_path, level, monkeypatch):
    function, *arguments = FUNCTIONS["matrix products"]
    library = shared(tmp_path, function, *arguments, isa=(level,))
    if level:
        monkeypatch.setenv("CYXLA_ISA", level)
    assert_same_bits(library(*arguments), cyxla.compile(function, *arguments)(*arguments))


def test_the_best_level_is_chosen_at_run_time(tmp_path):
    function, *arguments = FUNCTIONS["loop"]
    library = shared(tmp_path, function, *arguments, isa=default_levels())
    assert_same_bits(library(*arguments), cyxla.compile(function, *arguments)(*arguments))


def test_processor_without_code_for_it(tmp_path, monkeypatch):
    """A library for a level that no processor has: 9 in place of 4."""
    files = sources.write(aot.program(newton, ((2,), float), name="f"), isa=LEVEL)
    text = files["f.runtime.c"].decode()
    files["f.runtime.c"] = text.replace(
        "CYX_AOT_LEVELS " + text.split("CYX_AOT_LEVELS ")[1][0], "CYX_AOT_LEVELS 9"
    ).encode()
    path = build.shared(build.objects(files, tmp_path), tmp_path / "libf.so")
    with pytest.raises(UnimplementedError, match="no code for this processor"):
        Function(path, "f")(np.ones(2))


STABLEHLO = """
func.func public @main(%x: tensor<4x64xf32>) -> (tensor<4x32xf32>, tensor<4xi32>) {
  %w = stablehlo.constant dense<"0xDATA"> : tensor<64x32xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
  %1 = stablehlo.iota dim = 0 : tensor<4xi32>
  return %0, %1 : tensor<4x32xf32>, tensor<4xi32>
}
"""


@pytest.mark.parametrize("weights", ["embed", "file"])
def test_stablehlo_with_constants(tmp_path, weights):
    text = STABLEHLO.replace("DATA", RNG.random((64, 32), np.float32).tobytes().hex())
    product = aot.compile(text, directory=tmp_path, name="net", isa=LEVEL, weights=weights)
    assert product.weights_bytes == 64 * 32 * 4
    library, x = Function(product.library, "net"), RNG.random((4, 64), np.float32)
    if weights == "file":
        with pytest.raises(cyxla.errors.FailedPreconditionError, match="not loaded"):
            library(x)
        (tmp_path / "other").write_bytes((tmp_path / "net.weights").read_bytes()[:-1])
        assert library.load(tmp_path / "nothing", "net") == 5
        assert library.load(tmp_path / "other", "net") == 15
        assert library.load(tmp_path / "net.weights", "net") == library.load(tmp_path / "net.weights", "net") == 0
    assert_same_bits(library(x), cyxla.compile(text)(x))


@pytest.mark.parametrize("isa", [LEVEL, default_levels()])
def test_large_weights_are_bound_once(tmp_path, isa):
    w, b, x = RNG.random((300, 512), np.float32), RNG.random(512, np.float32), RNG.random((20, 300), np.float32)
    product = aot.compile(
        lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b, directory=tmp_path, name="f", isa=isa, bind={"w": w, 2: b}
    )
    library = Function(product.library, "f")
    assert library.arg_names == ["x"]
    assert product.weights_bytes < 1.1 * (w.nbytes + b.nbytes)  # whatever the number of levels
    compiled = cyxla.compile(lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b).bind({1: w, 2: b})
    assert_same_bits(library(x), compiled(x))


# --- the interface ----------------------------------------------------------------------------------------------------


def test_names_and_types_are_told(tmp_path):
    def step(state, *, rate=0.1):
        return {"w": state["w"] * rate, "n": state["n"] + 1}

    library = shared(tmp_path, step, {"w": ((2, 3), np.float32), "n": ((), int)})
    assert library.arg_names == ["state['w']", "state['n']"]
    assert library.result_names == ["result['w']", "result['n']"]
    assert library.lookup_arg_index("state['n']") == 1
    assert library.lookup_result_index("nothing") == -1
    assert len(library.build_id) == 16


def test_written_arguments_come_as_results(tmp_path):
    def add(x, y):
        x += y

    library = shared(tmp_path, add, ((3,), float), ((3,), float))
    assert library.result_names == ["new x"]
    assert_same_bits(library(np.ones(3), np.arange(3.0)), np.ones(3) + np.arange(3))


def test_failed_checks(tmp_path):
    library = shared(tmp_path, lambda x, k: x[k], ((5,), float), ((2,), int))
    assert_same_bits(library(np.arange(5.0), [4, -5]), np.array([4.0, 0.0]))
    with pytest.raises(
        OutOfRangeError, match=r"index 7 is out of bounds for axis 0 with size 5 \(test_libraries.py:\d+\)"
    ):
        library(np.arange(5.0), [1, 7])
    with pytest.raises(OutOfRangeError, match="index -6 is out"):
        library(np.arange(5.0), [1, -6])


HEAVY = (lambda x: np.sin(np.exp(x)).sum(1), RNG.random((2000, 1000)))


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("threads", ["none", "pthreads"])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_threads_of_the_library(tmp_path, threads, count):
    function, x = HEAVY
    library = shared(tmp_path, function, x, threads=threads)
    library.threads = count
    for _ in range(3):
        assert_same_bits(library(x), cyxla.compile(function, x)(x))


def test_threads_of_the_host(tmp_path):
    function, x = HEAVY
    library = shared(tmp_path, function, x)
    tasks_seen = []

    @ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64), ctypes.c_void_p, ctypes.c_int64
    )
    def parallel(host, task, data, tasks):
        tasks_seen.append((host, tasks))
        threads = [threading.Thread(target=task, args=(data, k)) for k in reversed(range(tasks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    library.set_arg_data(0, x)
    assert library.run(Run(parallel=ctypes.cast(parallel, ctypes.c_void_p).value, host=123))
    assert_same_bits(library.results, cyxla.compile(function, x)(x))
    assert tasks_seen[0][0] == 123
    assert tasks_seen[0][1] > 1


def test_temporaries_of_the_caller(tmp_path):
    function, *arguments = FUNCTIONS["sorts and reductions"]
    library = shared(tmp_path, function, *arguments)
    room = np.empty(library.temp_bytes + 64, np.uint8)
    for k, value in enumerate(arguments):
        library.set_arg_data(k, value)
    assert library.run(Run(temp=-(-room.ctypes.data // 64) * 64))
    assert_same_bits(library.results, cyxla.compile(function, *arguments)(*arguments))


@pytest.mark.parametrize("threads", ["none", "pthreads"])
def test_a_long_run_is_cancelled(tmp_path, threads):
    def forever(x):
        while x[0] < 1:
            x = x * 0.5
        return x

    library = shared(tmp_path, forever, ((1000,), float), threads=threads)
    cancel = ctypes.c_int32(0)
    library.set_arg_data(0, np.zeros(1000))
    timer = threading.Timer(0.1, lambda: setattr(cancel, "value", 1))
    timer.start()
    begin = time.monotonic()
    assert not library.run(Run(cancel=ctypes.addressof(cancel)))
    assert time.monotonic() - begin < 5
    assert (library.error_code, library.error_msg) == (CancelledError.number, "the call was cancelled")


@pytest.mark.parametrize("threads", ["none", "pthreads"])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_run_ends_when_a_poll_says_so(tmp_path, threads, parallel):
    def forever(x):
        while x[0] < 1:
            x = x * 0.5
        return x

    def many_tasks(x):
        return np.tanh(np.exp(np.sin(x)))

    size = 2_000_000 if parallel else 1000
    library = shared(tmp_path, many_tasks if parallel else forever, ((size,), float), threads=threads)
    library.set_arg_data(0, np.zeros(size))
    asked, answers = [], [0, 0, 5]
    poll = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(
        lambda host: asked.append((host, threading.get_ident())) or answers[min(len(asked) - 1, 2)]
    )
    assert not library.run(Run(poll=ctypes.cast(poll, ctypes.c_void_p), host=7))
    assert (library.error_code, library.error_msg) == (CancelledError.number, "the call was cancelled")
    assert set(asked) == {(7, threading.get_ident())}
    answers[:] = [0, 0, 0]
    if parallel:
        assert library.run(Run(poll=ctypes.cast(poll, ctypes.c_void_p), host=7))


def test_calls_from_many_threads(tmp_path):
    function, x = HEAVY
    library = shared(tmp_path, function, x, threads="pthreads")
    path, expected, wrong = library._library._name, cyxla.compile(function, x)(x), []

    def call():
        own = Function(path, "f")
        wrong.extend(k for k in range(5) if own(x)[0].tobytes() != expected.tobytes())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_several_programs_share_weights(tmp_path):
    table = RNG.random(5000)
    programs = [aot.program(f, x, name=n) for n, f, x in (
        ("first", lambda x: x + table, table), ("second", lambda x: x * table, table)
    )]  # fmt: skip
    product = aot.compile(programs, directory=tmp_path, name="both", isa=LEVEL)
    assert product.weights_bytes == -(-table.nbytes // 64) * 64
    assert_same_bits(Function(product.library, "first")(table), table + table)
    assert_same_bits(Function(product.library, "second")(table), table * table)


@pytest.mark.parametrize(
    "name", ["matrix products", "sorts and reductions", "integers", "no dimensions", "complex numbers"]
)
def test_arguments_need_the_alignment_of_an_element_alone(tmp_path, name):
    function, *arguments = FUNCTIONS[name]
    library = shared(tmp_path, function, *arguments)
    expected = library(*arguments)
    results, moved = [], []
    for arrays, found in ((library.args, moved), (library.results, results)):
        for array in arrays:
            room = np.empty(array.nbytes + 64, np.uint8)
            at = array.real.itemsize + (-room.ctypes.data) % 64
            found.append(room[at : at + array.nbytes].view(array.dtype).reshape(array.shape))
    for target, source in zip(moved, library.args, strict=True):
        target[...] = source
    entry, pointers = library._entry, [(ctypes.c_void_p * 9)(*(a.ctypes.data for a in x)) for x in (moved, results)]
    assert entry(*pointers, None) == 0
    assert_same_bits(results, expected)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("cost", [300, 3000])
def test_programs_of_many_units(tmp_path, cost, monkeypatch):
    monkeypatch.setattr(split_units, "LIBRARY_UNIT_COST", cost)
    function, *arguments = FUNCTIONS["sorts and reductions"]
    program = aot.program(function, *arguments, name="f")
    files = sources.write(program, isa=LEVEL)
    assert len([name for name in files if name.startswith(f"f.{LEVEL[0]}.")]) > 1
    path = build.shared(build.objects(files, tmp_path), tmp_path / "libf.so")
    assert_same_bits(Function(path, "f")(*arguments), cyxla.compile(function, *arguments)(*arguments))
    objects = tmp_path.glob("f.x86*.o")
    symbols = run_command("nm", "--defined-only", "--extern-only", *objects, cwd=tmp_path)
    names = {line.split()[-1] for line in symbols.splitlines() if len(line.split()) == 3}
    assert len(names) > 2
    assert not [name for name in names if not name.startswith("f_")]


FORKS = """
import os, sys, numpy as np
from cyxla.aot.loader import Function
f, x = Function(sys.argv[1], "f"), np.ones((2000, 1000))
f.threads = 4
expected = f(x)[0].tobytes()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if f(x)[0].tobytes() == expected else 1)
    assert f(x)[0].tobytes() == expected
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("ok")
"""


def test_a_forked_process_has_threads_of_its_own(tmp_path):
    library = shared(tmp_path, *HEAVY, threads="pthreads")
    done = subprocess.run(
        [sys.executable, "-c", FORKS, library._library._name], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")


# --- files ------------------------------------------------------------------------------------------------------------

BUILD = """
import sys, numpy as np
from cyxla import aot
def f(x, w):
    return np.tanh(x @ w) + np.arange(3000).reshape(3, 1000)
w = np.random.default_rng(0).random((400, 1000))
for kind in ("c", "object", "static", "shared"):
    aot.compile(f, ((3, 400), float), w, bind={"w": w}, directory=sys.argv[1] + kind, kind=kind, name="f",
                threads="pthreads", isa=("LEVEL",), cpp_class="ns::F", program_shape=True)
""".replace("LEVEL", LEVEL[0])


@pytest.mark.slow
def test_two_processes_make_the_same_bytes(tmp_path):
    (tmp_path / "build.py").write_text(BUILD)
    found = []
    for k in range(2):
        target = tmp_path / f"{'x' * (5 * k + 1)}"
        target.mkdir()
        subprocess.run([sys.executable, tmp_path / "build.py", f"{target}/"], check=True, env=_environment(k))
        found.append({p.relative_to(target): p.read_bytes() for p in target.rglob("*") if p.is_file()})
    assert len(found[0]) > 20
    assert found[0].keys() == found[1].keys()
    assert [path for path in found[0] if found[0][path] != found[1][path]] == []
    assert not [path for path, data in found[0].items() if bytes(tmp_path) in data or b"build.py" in data]


def _environment(seed):
    return {**os.environ, "PYTHONHASHSEED": str(seed), "CYXLA_CACHE": "0"}


@needs_gcc
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("tool", ["make", "cmake"])
def test_sources_with_large_weights_have_the_bits_of_jit(tmp_path, tool):
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    table = RNG.random((500, 600))  # 2.4 MB, which the assembler includes
    product = aot.compile(
        lambda x: np.tanh(x @ table), ((40, 500), float), directory=tmp_path / "net", kind="c", name="net"
    )
    assert {p.suffix for p in product.files} == {".h", ".c", ".S", ".bin", ".json", ".mk", ".cmake"}
    if tool == "make":
        run_command("make", "-f", "net/net.mk", "net/libnet.so", cwd=tmp_path)
        path = tmp_path / "net" / "libnet.so"
    else:
        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(p C)\ninclude(net/net.cmake)\n"
            "add_library(user SHARED user.c)\ntarget_link_libraries(user PRIVATE net -Wl,-u,net,-u,net_info)\n"
        )
        (tmp_path / "user.c").touch()
        run_command("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
        run_command("cmake", "--build", "build", cwd=tmp_path)
        path = tmp_path / "build" / "libuser.so"
    x = RNG.random((40, 500))
    assert_same_bits(Function(path, "net")(x), cyxla.compile(lambda x: np.tanh(x @ table), x)(x))


@needs_gcc
def test_symbols_have_the_prefix_of_their_library(tmp_path):
    product = aot.compile(
        layers, *FUNCTIONS["matrix products"][1:], directory=tmp_path, kind="static", name="net", threads="pthreads"
    )
    symbols = run_command("nm", "--defined-only", "--extern-only", product.library, cwd=tmp_path)
    names = {line.split()[-1] for line in symbols.splitlines() if len(line.split()) == 3}
    assert {"net", "net_info"} <= names
    assert not [name for name in names if not name.startswith("net")]
    library = build.shared([product.library], tmp_path / "libnet.so")
    shared_product = aot.compile(newton, ((3,), float), directory=tmp_path / "shared", name="net")
    exported = run_command("nm", "-D", "--defined-only", shared_product.library, cwd=tmp_path)
    assert {line.split()[-1] for line in exported.splitlines()} == {"net", "net_info"}
    assert library.exists()


@needs_gcc
def test_a_library_needs_libc_alone(tmp_path):
    product = aot.compile(newton, ((3,), float), directory=tmp_path, name="f", isa=LEVEL)
    lines = run_command("readelf", "-d", product.library, cwd=tmp_path).splitlines()
    needed = [line.split()[-1].strip("[]") for line in lines if "NEEDED" in line]
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


@pytest.mark.parametrize("options, message", [
    ({"kind": "jar"}, "kind='jar'"),
    ({"name": "2x"}, "name='2x' is not an identifier of C"),
    ({"name": "double"}, "name='double'"),
    ({"name": "exp"}, "name='exp' is a name of the C library"),
    ({"threads": "many"}, "threads='many'"),
    ({"weights": "cloud"}, "weights='cloud'"),
    ({"isa": ("x86-64-v9",)}, "isa="),
    ({"isa": ()}, "isa="),
    ({"cpp_class": "a::1"}, "'a::1' is not the name of a C"),
    ({"cpp_class": "f"}, "both named f"),
    ({"bind": {"z": np.ones(3)}}, "no argument 'z'"),
    ({"bind": {"x": np.ones(4)}}, "bound argument 0"),
])  # fmt: skip
def test_wrong_options(tmp_path, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        aot.compile(lambda x: x + 1, ((3,), float), **{"directory": tmp_path, "name": "f", **options})


def test_transfers_are_refused(tmp_path):
    text = """ENTRY e { t = token[] after-all() in = (f32[2], token[]) infeed(t)
      ROOT x = f32[2] get-tuple-element(in), index=0 }"""
    with pytest.raises(UnimplementedError, match="calls Python for the operations infeed"):
        aot.compile(text, directory=tmp_path, name="f")


def test_what_needs_python_is_refused(tmp_path):
    @cyxla.custom_call("aot_test.twice", result=lambda x: x)
    def twice(x):
        return x * 2

    with pytest.raises(UnimplementedError, match=r"f calls Python for the operations aot_test\.twice"):
        aot.compile(lambda x: twice(x), ((3,), float), directory=tmp_path, name="f")
    with pytest.raises(UnimplementedError, match="calls dgesdd for the operations lapack_dgesdd_ffi"):
        aot.compile(lambda x: np.linalg.svd(x)[1], ((3, 3), float), directory=tmp_path, name="f")


def test_results_of_run_time_size_come_padded_with_their_sizes(tmp_path):
    library = shared(tmp_path, lambda x: x[x > 0], ((6,), float))
    x = np.array([1.0, -1, 2, 0, 3, -5])
    padded, size = library(x)
    assert padded[: int(size)].tolist() == [1, 2, 3]
