"""The registry of custom calls, and the targets known from the start."""

import numpy as np
import pytest

from cyxla.errors import AlreadyExistsError, UnimplementedError
from cyxla.types import Shape
from cyxla.xla.evaluator import Options
from cyxla.xla.evaluator.custom_calls import (
    check_custom_calls,
    custom_call_targets,
    options_of,
    register_custom_call,
    unregister_custom_call,
)  # fmt: skip
from cyxla.xla.hlo import Computation, HloModule

X = np.arange(4, dtype=np.float32)


def call(target, config="", shape="f32[4]", operands="p0"):
    config = f", backend_config={config}" if config else ""
    return f'{shape} custom-call({operands}), custom_call_target="{target}"{config}'


def module(target):
    return HloModule.from_text(f"ENTRY main {{ p0 = f32[4] parameter(0) ROOT r = {call(target)} }}")


@pytest.fixture
def double():
    register_custom_call("test_double", lambda ev, ins, x: x * np.float32(options_of(ins).get("by", 2)))
    yield
    unregister_custom_call("test_double")


@pytest.mark.usefixtures("double")
def test_a_registered_target_runs(hlo):
    np.testing.assert_array_equal(hlo(call("test_double"), X), 2 * X)
    np.testing.assert_array_equal(hlo(call("test_double", "{by = 3 : i32}"), X), 3 * X)
    assert "test_double" in custom_call_targets()


@pytest.mark.usefixtures("double")
def test_a_target_is_registered_once():
    with pytest.raises(AlreadyExistsError, match="test_double"):
        register_custom_call("test_double", lambda ev, ins, x: x)
    register_custom_call("test_double", lambda ev, ins, x: x, replace=True)


@pytest.mark.usefixtures("double")
def test_options_of_a_run_come_first(hlo):
    own = Options(custom_calls={"test_double": lambda ev, ins, x: -x})
    np.testing.assert_array_equal(hlo(call("test_double"), X, options=own), -X)


def test_an_unknown_target_is_found_before_running():
    with pytest.raises(UnimplementedError, match="'nobody_knows' is not registered") as caught:
        check_custom_calls(module("nobody_knows"))
    assert caught.value.number == 12
    assert "computation main" in caught.value.where
    check_custom_calls(module("nobody_knows"), extra=["nobody_knows"])
    check_custom_calls(module("Sharding"))


def test_an_unknown_target_fails_when_it_runs(hlo):
    with pytest.raises(UnimplementedError, match="nobody_knows"):
        hlo(call("nobody_knows"), X)


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_buffer_python_cpu_callback"])
def test_python_callbacks_say_why(target):
    with pytest.raises(UnimplementedError) as caught:
        check_custom_calls(module(target))
    assert "Python function" in caught.value.hint


@pytest.mark.parametrize(
    "config, want",
    [
        ("{uplo = 76 : ui8, left = true}", {"uplo": 76, "left": True}),
        ('{"k": 3, "name": "top", "eps": 1e-3}', {"k": 3, "name": "top", "eps": 1e-3}),
        ("{}", {}),
        ("", {}),
        ("{low = -1 : i32, transpose = false}", {"low": -1, "transpose": False}),
    ],
)
def test_options(config, want):
    comp = Computation("main")
    shape = Shape.array("f32")
    ins = comp.add("custom-call", [], {"custom_call_target": "x"}, shape=shape, extras={"backend_config": config})
    assert options_of(ins) == want


# --- built-in targets ---


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "annotate_device_placement", "MoveToHost"])
def test_annotations_are_identities(hlo, target):
    np.testing.assert_array_equal(hlo(call(target), X), X)


def test_annotations_that_cut_need_partitions(hlo):
    with pytest.raises(UnimplementedError, match="partition"):
        hlo(call("SPMDFullToShardShape", shape="f32[2]"), X)


def test_elementwise_targets(hlo):
    np.testing.assert_array_equal(hlo(call("mhlo.sinh"), X), np.sinh(X.astype(np.float64)).astype(np.float32))


def test_top_k(hlo):
    values, places = hlo(call("TopK", shape="(f32[2], s32[2])"), np.float32([1, 5, 5, 2]))
    assert (values.tolist(), places.tolist()) == ([5, 5], [1, 2])


def test_qr_and_its_reflectors(hlo):
    a = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    packed, taus = hlo(call("Qr", shape="(f32[2,5,3], f32[2,3])"), a)
    q = hlo(call("ProductOfElementaryHouseholderReflectors", shape="f32[2,5,3]", operands="p0, p1"), packed, taus)
    np.testing.assert_allclose(q @ np.triu(packed[:, :3]), a, atol=1e-5)
    np.testing.assert_allclose(np.swapaxes(q, 1, 2) @ q, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-5)


def test_lu_counts_from_zero(hlo):
    a = np.random.default_rng(1).standard_normal((4, 4))
    lu, pivots, order = hlo(call("LuDecomposition", shape="(f64[4,4], s32[4], s32[4])"), a)
    np.testing.assert_allclose((np.tril(lu, -1) + np.eye(4)) @ np.triu(lu), a[order], atol=1e-12)
    assert pivots.min() >= 0
    assert sorted(order) == [0, 1, 2, 3]


def test_eigh(hlo):
    a = np.random.default_rng(2).standard_normal((3, 3))
    vectors, values = hlo(call("Eigh", '"1,1,100,1e-6"', shape="(f64[3,3], f64[3])"), a + a.T)
    np.testing.assert_allclose(vectors * values @ vectors.T, a + a.T, atol=1e-12)


@pytest.mark.parametrize("columns", [(), (2,)])
def test_sparse_rows_times_dense(hlo, columns):
    matrix = np.float32([[0, 2, 0], [0, 0, 0], [3, 0, 4]])
    dense = np.random.default_rng(3).standard_normal((3, *columns)).astype(np.float32)
    dims = ",".join(map(str, (3, *columns)))
    text = call("cpu_csr_sparse_dense_ffi", shape=f"f32[{dims}]", operands="p0, p1, p2, p3")
    got = hlo(text, np.float32([2, 3, 4]), np.int32([0, 1, 1, 3]), np.int32([1, 0, 2]), dense)
    np.testing.assert_allclose(got, matrix @ dense, rtol=1e-6)
