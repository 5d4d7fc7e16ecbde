"""Libraries of kernels: a plugin in C, of version 1 of the interface, is built here, judged, loaded and run."""

import logging
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support.graphs.probes import Registries, context

import cyxla
from cyxla.core.framework import KernelRegistry, OpRegistry, StepContext, load_library
from cyxla.core.framework.load_library import cpu_features, load_dynamic_kernels, load_op_library, why_unsafe
from cyxla.core.framework.op_kernel import run_kernel
from cyxla.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)

CC = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
needs_compiler = pytest.mark.skipif(CC is None, reason="there is no C compiler")

SOURCE = r"""
#include <stddef.h>
#define CYXLA_KERNEL_ABI 1
#include "cyxla/kernel_plugin.h"

CYXLA_KERNEL_STAMP

static int32_t scale(cyxla_call *call) {
  const cyxla_tensor *x = &call->inputs[0];
  double factor;
  int64_t offset;
  if (call->attr_float(call, "factor", &factor) || call->attr_int(call, "offset", &offset)) return CYXLA_FAILED;
  if (x->rank < 1) return call->fail(call, 3, "x must not be a scalar");
  float *y = call->allocate_output(call, 0, x->rank, x->dims);
  if (!y) return CYXLA_FAILED;
  for (int64_t i = 0; i < cyxla_elements(x); ++i) y[i] = factor * ((const float *)x->data)[i] + offset;
  return 0;
}

static int32_t code(cyxla_call *call) { return 11; }

static int32_t greedy(cyxla_call *call) {
  const int64_t dims[] = {1000000};
  return call->allocate_output(call, 0, 1, dims) ? 0 : CYXLA_FAILED;
}

static int32_t curious(cyxla_call *call) {
  int64_t value;
  return call->attr_int(call, "unheard", &value);
}

static const cyxla_op ops[] = {
  {"PluginScale", "x: T -> y: T", "T: {float, double} = DT_FLOAT; factor: float = 2.0; offset: int = 0", "Scale x."},
  {"PluginWords", "x: string -> y: float", NULL, NULL},
};
static const cyxla_kernel kernels[] = {
  {"PluginScale", "CPU", "T=float", NULL, 0, scale},
  {"PluginScale", "CPU", "T=float", "code", 0, code},
  {"PluginScale", "CPU", "T=float", "greedy", 0, greedy},
  {"PluginScale", "CPU", "T=float", "curious", 7, curious},
  {"PluginWords", "CPU", NULL, NULL, 0, code},
};
CYXLA_KERNEL_PLUGIN(ops, 2, kernels, 5)
"""


def build(folder, name="libcyxlakernel_sample.so", *flags, source=SOURCE):
    """The plugin, compiled."""
    (folder / "plugin.c").write_text(source)
    target = folder / name
    command = [CC, "-shared", "-fPIC", "-O1", f"-I{cyxla.get_include()}", *flags, str(folder / "plugin.c")]
    subprocess.run([*command, "-o", str(target)], check=True, timeout=600)
    return target


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    if CC is None:
        pytest.skip("there is no C compiler")
    return build(tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def world():
    return Registries()


def load(world, path):
    return load_op_library(path, ops=world.ops, kernels=world.kernels)


def test_a_library_brings_ops_and_kernels(world, plugin):
    """Its kernel runs."""
    library = load(world, plugin)
    assert [op_def.name for op_def in library.ops] == ["PluginScale", "PluginWords"]
    assert library.kernels == 5
    assert world.ops.look_up_op_def("PluginScale").summary == "Scale x."
    made = world.make("PluginScale", factor=3.0, offset=1)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for array in (x, x.T, np.zeros((0, 2), np.float32)):
        (result,) = run_kernel(made, context(made, array))
        np.testing.assert_array_equal(result, 3 * array + 1)


FAILURES = [
    ("", np.float32(1), InvalidArgumentError, "x must not be a scalar"),
    ("code", np.ones(2, np.float32), OutOfRangeError, "returned the code 11"),
    ("curious", np.ones(2, np.float32), InvalidArgumentError, "no int attribute 'unheard'"),
]


@pytest.mark.parametrize("label, x, error, text", FAILURES, ids=[f[0] or "fail" for f in FAILURES])
def test_errors_of_kernels_in_c(world, plugin, label, x, error, text):
    load(world, plugin)
    made = world.make("PluginScale", _kernel=label)
    with pytest.raises(error, match=text) as caught:
        run_kernel(made, context(made, np.asarray(x)))
    assert caught.value.node == "probe"
    assert caught.value.where == "node 'probe' (PluginScale)"


def test_limits_hold_for_kernels_in_c(world, plugin):
    load(world, plugin)
    made = world.make("PluginScale", _kernel="greedy")
    with pytest.raises(ResourceExhaustedError):
        run_kernel(made, context(made, np.ones(1, np.float32), step=StepContext(memory_limit=1000)))


def test_kernels_in_c_take_plain_data(world, plugin):
    load(world, plugin)
    made = world.make("PluginWords")
    with pytest.raises(UnimplementedError, match="numeric"):
        run_kernel(made, context(made, np.array([b"a"], object)))


def test_folders_are_searched_once(plugin, monkeypatch):
    """By the pattern of names; a second call loads nothing."""
    monkeypatch.setattr(load_library, "_folders", set())
    shutil.copy(plugin, plugin.parent / "libother.so")
    (plugin.parent / "libcyxlakernel.txt").write_text("no library")
    world = Registries()
    found = load_dynamic_kernels([plugin.parent], ops=world.ops, kernels=world.kernels)
    assert [library.path.name for library in found] == [plugin.name]
    assert load_dynamic_kernels([plugin.parent], ops=world.ops, kernels=world.kernels) == []


@needs_compiler
def test_a_library_for_another_processor_is_left_out(tmp_path, monkeypatch, caplog):
    """With a warning that names the reason; the variable loads it all the same."""
    monkeypatch.setattr(load_library, "_folders", set())
    build(tmp_path, "libcyxlakernel_far.so", '-DCYXLA_EXTRA_FEATURES="warp9,"')
    world = Registries()
    with caplog.at_level(logging.WARNING, "cyxla.plugins"):
        assert load_dynamic_kernels([tmp_path], ops=world.ops, kernels=world.kernels) == []
    assert "needs warp9, which this processor does not support" in caplog.text
    assert "PluginScale" not in world.ops
    monkeypatch.setattr(load_library, "_folders", set())
    monkeypatch.setenv("CYXLA_REALLY_LOAD_UNSAFE_PACKAGES", "1")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "cyxla.plugins"):
        assert len(load_dynamic_kernels([tmp_path], ops=world.ops, kernels=world.kernels)) == 1
    assert "is loaded although it needs warp9" in caplog.text
    made = world.make("PluginScale")
    assert run_kernel(made, context(made, np.ones(1, np.float32)))[0].tolist() == [2]


STAMPS = [
    (b"nothing", "no version stamp"),
    (b"cyxla-kernel-plugin abi=99 machine=x86_64 features=;", "version 99"),
    (b"cyxla-kernel-plugin abi=1 machine=pdp11 features=;", "built for pdp11"),
]


@pytest.mark.parametrize("stamp, reason", STAMPS)
def test_stamps(world, tmp_path, stamp, reason):
    """Judged without running anything of the file."""
    path = tmp_path / "libcyxlakernel_x.so"
    path.write_bytes(b"\x7fELF" + stamp)
    assert reason in why_unsafe(path)
    with pytest.raises(FailedPreconditionError, match=reason):
        load(world, path)


def test_instruction_sets_of_the_processor(plugin):
    assert why_unsafe(plugin) == ""
    assert isinstance(cpu_features(), frozenset)


def test_files_that_are_no_library(world, tmp_path, monkeypatch):
    with pytest.raises(NotFoundError):
        load(world, tmp_path / "absent.so")
    path = tmp_path / "text.so"
    path.write_text("text")
    monkeypatch.setenv("CYXLA_REALLY_LOAD_UNSAFE_PACKAGES", "1")
    with pytest.raises(InvalidArgumentError, match="not a kernel library"):
        load(world, path)


@needs_compiler
def test_a_library_enters_as_a_whole_or_not_at_all(tmp_path):
    """One of its ops is there already, so the other does not come in, nor do its kernels."""
    world = Registries()
    world.op("PluginWords", "x: string -> y: float")
    path = build(tmp_path)
    with pytest.raises(AlreadyExistsError, match="PluginWords"):
        load(world, path)
    assert "PluginScale" not in world.ops
    assert world.kernels.get_all_registered_kernels() == []
    world.op("Later", "->")  # the registry goes on
    assert "Later" in world.ops


def test_a_library_in_python(tmp_path):
    """It registers in the global registries; a second load gives the same."""
    path = tmp_path / "more.py"
    path.write_text(
        "from cyxla.core.framework import array_kernel, op\n"
        "op('TripledByPlugin', 'x: T -> y: T', 'T: {float, int32}', shape=None)\n"
        "array_kernel('TripledByPlugin', lambda x: x * 3)\n"
    )
    library = load_op_library(path)
    assert [op_def.name for op_def in library.ops] == ["TripledByPlugin"]
    assert library.kernels == 1
    assert load_op_library(path) is library
    assert OpRegistry.global_().look_up_op_def("TripledByPlugin").name == "TripledByPlugin"
    KernelRegistry.global_().keep_only(lambda kernel_def: kernel_def.op != "TripledByPlugin")


def test_a_failing_library_in_python_leaves_nothing(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(
        "from cyxla.core.framework import array_kernel, op\n"
        "op('HalfAPlugin', 'x: T -> y: T', 'T: {float, int32}', shape=None)\n"
        "array_kernel('HalfAPlugin', lambda x: x * 3)\n"
        "op('bad name', '->', shape=None)\n"
    )
    kernels = KernelRegistry.global_()
    before = kernels.get_all_registered_kernels()
    with pytest.raises(InvalidArgumentError):
        load_op_library(path)
    assert "HalfAPlugin" not in OpRegistry.global_()
    assert kernels.get_all_registered_kernels() == before


ANNOUNCED = """
from cyxla.core.framework import array_kernel, op

def register():
    op("Announced", "x: T -> y: T", "T: {float, int32}", shape=None)
    array_kernel("Announced", lambda x: x + 1)
"""


def test_installed_packages_announce_kernels(tmp_path):
    """They are asked when an op is missing; one that fails is warned of."""
    (tmp_path / "announced_kernels.py").write_text(ANNOUNCED)
    info = tmp_path / "announced-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[cyxla.kernels]\nbroken = no_such_module:nothing\ngood = announced_kernels:register\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    use = "import numpy as np; from cyxla.core.framework import apply_op; print(apply_op('Announced', np.int32(1)))"
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, timeout=600, env=env)
    assert done.stdout == "2\n"
    assert "no_such_module" in done.stderr


FIRST_USE = """
import threading
import numpy as np
from cyxla.core.framework import apply_op

results, ready = [], threading.Barrier(6)

def work():
    ready.wait()
    try:
        results.append(int(apply_op("Announced", np.int32(1))))
    except Exception as error:
        results.append(type(error).__name__)

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results)
"""


def test_threads_that_use_an_announced_op_first_wait_for_it(tmp_path):
    slow = "import time; time.sleep(0.1)  # as long as other threads need to fail\n"
    (tmp_path / "announced_kernels.py").write_text(slow + ANNOUNCED)
    info = tmp_path / "announced-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cyxla.kernels]\ngood = announced_kernels:register\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=60, env=env)
    assert (done.stdout, done.stderr) == ("[2, 2, 2, 2, 2, 2]\n", "")


def test_ops_of_libraries_are_found_by_name(plugin):
    """With nothing but the variable set."""
    env = {**os.environ, "CYXLA_KERNEL_PATH": str(plugin.parent)}
    use = (
        "import numpy as np; from cyxla.core.framework import apply_op; print(apply_op('PluginScale', np.float32([1])))"
    )
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, timeout=600, env=env)
    assert (done.stdout, done.stderr) == ("[2.]\n", "")


def test_the_folders_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(load_library, "_folders", set())
    monkeypatch.setenv("CYXLA_KERNEL_PATH", os.pathsep.join([str(tmp_path), "", "/nowhere"]))
    assert load_dynamic_kernels() == []
    assert len(load_library._folders) == 2
