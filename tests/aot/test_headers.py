"""Headers: free of warnings in C99 and C++, and the C++ class with its accessors."""

import pytest
from support.builds.ahead_of_time import LEVEL, needs_gcc, run_command

import cyxla
from cyxla import aot
from cyxla.xla.hlo.proto.schema import messages

pytestmark = needs_gcc
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


@pytest.fixture(scope="module")
def every_type(tmp_path_factory):
    """A library of a program with an argument and a result of every type, and names that C++ does not take."""

    def f(class_, void, **others):
        return {"class": class_, "x y": void, "x-y": void + 1, **others}

    arrays = {name: ((2, 3), name) for name in DTYPES}
    folder = tmp_path_factory.mktemp("every_type")
    traced = cyxla.jit(lambda a, b, c: f(a, b, **c))
    aot.compile(traced, ((), float), ((4,), int), arrays, directory=folder, name="f", kind="static", isa=LEVEL,
                cpp_class="some::ns::Every", program_shape=True, threads="pthreads")  # fmt: skip
    return folder


@pytest.mark.parametrize("compiler, standard, suffix", [
    ("gcc", "c99", "c"), ("gcc", "c11", "c"), ("g++", "c++11", "cpp"), ("g++", "c++14", "cpp"), ("g++", "c++20", "cpp"),
])  # fmt: skip
def test_no_warnings(every_type, compiler, standard, suffix):
    source = every_type / f"{standard}.{suffix}"
    source.write_text('#include "f.h"\n#include "f.h"\nint main(void) { return f_info()->num_args == 0; }\n')
    run_command(
        compiler, f"-std={standard}", *WARNINGS, source, "libf.a", "-lm", "-pthread", "-o", "main", cwd=every_type
    )
    run_command("./main", cwd=every_type)


@pytest.mark.parametrize("header", ["library.h", "function.h"])
@pytest.mark.parametrize("before", ["", '#include "cyxla/abi.h"\n', '#include "cyxla/call.h"\n'])
def test_copied_headers_stand_alone(tmp_path, header, before):
    (tmp_path / "x.cpp").write_text(f'{before}#include "cyxla/aot/{header}"\n')
    run_command("g++", "-std=c++11", *WARNINGS, "-I", cyxla.get_include(), "-fsyntax-only", "x.cpp", cwd=tmp_path)


MAIN = """
#include <cstdio>
#include "net.h"

int main() {
  typedef models::Net Net;
  Net net;
  static_assert(Net::kNumArgs == 2 && Net::kNumResults == 2 && Net::arg_x_count() == 6 && Net::arg0_size() == 24, "");
  if (net.num_args() != 2 || net.LookupArgIndex("k") != 1 || net.LookupArgIndex("z") != -1) return 1;
  if (net.LookupResultIndex("result['total']") != 1 || std::string(Net::ArgNames()[0]) != "x") return 2;
  if (Net::ArgNames()[2] != nullptr || std::string(Net::ResultNames()[0]) != "result['y']") return 3;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) net.arg_x(i, j) = static_cast<float>(10 * i + j);
  net.arg1() = 2;
  if (!net.Run()) return 4;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) std::printf("%g ", net.result0(i, j));
  std::printf("| %g\\n", *net.result1_data());

  net.set_threads(1);
  net.arg_k() = 9;
  if (net.Run() || net.error_code() != 11) return 5;
  std::printf("%s\\n", net.error_msg().c_str());

  Net bare(Net::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  if (bare.arg_data(0) != nullptr || bare.Run()) return 6;
  std::printf("%s\\n", bare.error_msg().c_str());
  const float x[] = {1, 2, 3, 4, 5, 6};
  const int64_t k = 1;
  bare.set_arg_x_data(x);
  bare.set_arg_data(1, &k);
  float out[6];
  bare.set_result_data(0, out);
  if (!bare.Run() || !bare.error_msg().empty()) return 7;
  std::printf("%g %g\\n%s\\n", out[5], bare.result1(), Net::ProgramShape());
  std::size_t size = 0;
  const unsigned char *proto = Net::ProgramShapeProto(&size);
  for (std::size_t n = 0; n < size; ++n) std::printf("%02x", proto[n]);
  std::printf("\\n");
  return 0;
}
"""


def test_the_class_runs(tmp_path):
    def net(x, k):
        return {"y": x * 2, "total": x[:, k].sum()}

    aot.compile(net, ((2, 3), "f4"), ((), int), directory=tmp_path, kind="static", isa=LEVEL, cpp_class="models::Net",
                program_shape=True)  # fmt: skip
    (tmp_path / "main.cpp").write_text(MAIN)
    run_command(
        "g++",
        "-std=c++11",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "main.cpp",
        "libnet.a",
        "-o",
        "main",
        cwd=tmp_path,
    )
    values, failed, missing, bare, text, proto = run_command("./main", cwd=tmp_path).splitlines()
    assert values == "0 2 4 20 22 24 | 14"
    assert failed.startswith("index 9 is out of bounds for axis 1 with size 3")
    assert missing == "argument x has no data"
    assert bare == "12 7"
    assert text == "(x: f32[2,3], k: s64[]) -> (f32[2,3], f32[])"
    shape = messages()["ProgramShapeProto"].FromString(bytes.fromhex(proto))
    assert list(shape.parameters[0].dimensions) == [2, 3]
    assert [bytes(n) for n in shape.parameter_names] == [b"x", b"k"]


def test_a_program_writes_its_argument(tmp_path):
    """An argument that the program writes has its new value after a run, as variables of graphs have."""

    def step(state, x):
        state += x

    aot.compile(step, ((3,), float), ((), float), directory=tmp_path, kind="static", isa=LEVEL, cpp_class="Step")
    (tmp_path / "main.cpp").write_text("""
#include <cstdio>
#include "step.h"
int main() {
  Step step;
  for (int k = 0; k < 3; ++k) step.arg_state(k) = k;
  step.arg_x() = 0.5;
  for (int k = 0; k < 4; ++k) if (!step.Run()) return 1;
  std::printf("%g %g %g\\n", step.arg_state(0), step.arg_state(1), step.arg_state(2));
  return 0;
}
""")
    run_command("g++", "main.cpp", "libstep.a", "-o", "main", cwd=tmp_path)
    assert run_command("./main", cwd=tmp_path).split() == ["2", "3", "4"]


def test_accessors_do_not_clash(tmp_path):
    """Names that make the accessors of another name, or are methods of the class."""
    names = ("x", "x_data", "x_size", "x_count", "data", "size", "x.data", "x-data", "0", "")
    spec = dict.fromkeys(names, ((2,), float))
    aot.compile(lambda x: x, spec, directory=tmp_path, kind="static", name="f", isa=LEVEL, cpp_class="F")
    (tmp_path / "main.cpp").write_text('#include "f.h"\nint main() { F f; return !f.Run() || !f.arg_data(0); }\n')
    run_command("g++", "-std=c++11", *WARNINGS[:2], "-Werror", "main.cpp", "libf.a", "-lm", "-o", "main", cwd=tmp_path)
    run_command("./main", cwd=tmp_path)


def test_text_of_a_program_does_not_reach_code(tmp_path):
    """Names and documentation with quotes, comment signs, newlines, trigraphs and other scripts."""
    awkward = 'a"b\\ */ *\\ ??/ \n #error \x00 é %s'

    def f(x):
        return {awkward: x[awkward]}

    f.__doc__ = f'{awkward} */ #error "*/'
    aot.compile(f, {awkward: ((2,), float)}, directory=tmp_path, kind="static", isa=LEVEL, cpp_class="F")
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\n#include "f.h"\nint main() { std::puts(f_info()->args->name); }\n'
    )
    run_command("g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "main.cpp", "libf.a", "-o", "main", cwd=tmp_path)
    assert run_command("./main", cwd=tmp_path).startswith("x['a\"b")
    (tmp_path / "main.c").write_text('#include "f.h"\nint main(void) { return 0; }\n')
    run_command("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "libf.a", "-o", "main", cwd=tmp_path)
