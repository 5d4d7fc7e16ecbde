"""Kernels are measured when asked for, and only then."""

import json
import threading
from itertools import pairwise

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.cpu.run.profile import EVENTS
from cyxla.xla.service.profile import KernelTime, Profile

TWO_KERNELS = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[60,60] parameter(0)
  zero = f32[] constant(0)
  y = f32[60,60] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[60] reduce(y, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[60,60], f32[60]) tuple(y, s)
}"""
LOOP = """HloModule m
lower { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
more { s = (s32[], f32[8,4,4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(TRIPS)
  ROOT c = pred[] compare(i, n), direction=LT }
turn { s = (s32[], f32[8,4,4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[8,4,4] get-tuple-element(s), index=1
  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[8,4,4] sort(x), dimensions={2}, to_apply=lower
  ROOT t = (s32[], f32[8,4,4]) tuple(j, y) }
ENTRY e { x = f32[8,4,4] parameter(0)  zero = s32[] constant(0)  s = (s32[], f32[8,4,4]) tuple(zero, x)
  ROOT w = (s32[], f32[8,4,4]) while(s), condition=more, body=turn }"""  # noqa: E501

X = np.eye(60, dtype=np.float32)


def test_every_call_of_a_kernel_counts():
    run = cyxla.compile(TWO_KERNELS, profile=True)
    for _ in range(7):
        run(X)
    found = run.profile()
    assert {k.kind: k.calls for k in found.kernels} == {"dot": 7, "reduce": 7}
    assert all(k.ns > 0 and k.estimated_ns > 0 for k in found.kernels)
    assert sum(k.nbytes for k in found.kernels) == 7 * 4 * (2 * 60 * 60 + 60 * 60 + 60)
    assert [k.ns for k in found.kernels] == sorted((k.ns for k in found.kernels), reverse=True)


def test_kernels_have_the_names_of_the_code():
    run = cyxla.compile(TWO_KERNELS, profile=True)
    run(X)
    for kernel in run.profile().kernels:
        assert f"cyx_status {kernel.name}(" in run.c_source
        assert f"{kernel.name} " in str(run.profile())
        assert kernel.operation in str(run.profile())


def test_results_are_the_same():
    x = np.random.default_rng(0).standard_normal((60, 60)).astype(np.float32)
    for got, want in zip(cyxla.compile(TWO_KERNELS, profile=True)(x), cyxla.compile(TWO_KERNELS)(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_nothing_is_emitted_without_it():
    run = cyxla.compile(TWO_KERNELS)
    assert "profile" not in run.c_source
    assert "profile" in cyxla.compile(TWO_KERNELS, profile=True).c_source
    with pytest.raises(InvalidArgumentError, match="profile=True"):
        run.profile()


def test_other_platforms_say_so():
    with pytest.raises(UnimplementedError, match="interpreter"):
        cyxla.compile(TWO_KERNELS, platform="interpreter", profile=True).profile()


def test_a_reset_begins_anew():
    run = cyxla.compile(TWO_KERNELS, profile=True)
    run(X)
    assert all(k.calls == 1 for k in run.profile(reset=True).kernels)
    assert all(k.calls == 0 and k.ns == 0 for k in run.profile().kernels)
    assert run.profile().events == ()
    run(X)
    assert all(k.calls == 1 for k in run.profile().kernels)


def test_executables_of_one_program_count_apart():
    first, second = (cyxla.compile(TWO_KERNELS, profile=True) for _ in range(2))
    first(X)
    assert [sum(k.calls for k in run.profile().kernels) for run in (first, second)] == [2, 0]


def test_bound_programs_count_apart():
    whole = cyxla.compile(
        "HloModule m\nENTRY e { x = f32[60,60] parameter(0)  y = f32[60,60] parameter(1)\n"
        "  ROOT z = f32[60,60] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
        profile=True,
    )
    bound = whole.bind({1: X})
    for _ in range(3):
        bound(X)
    assert sum(k.calls for k in whole.profile().kernels) == 0
    assert sum(k.calls for k in bound.profile().kernels if k.kind == "dot") == 3


def test_turns_of_loops_count_and_the_log_is_bounded():
    trips = EVENTS + 100
    run = cyxla.compile(LOOP.replace("TRIPS", str(trips)), profile=True)
    run(np.zeros((8, 4, 4), np.float32))
    found = run.profile()
    calls = sum(k.calls for k in found.kernels)
    assert max(k.calls for k in found.kernels) >= trips
    assert (len(found.events), found.lost) == (EVENTS, calls - EVENTS)


def test_calls_from_several_threads():
    run = cyxla.compile(TWO_KERNELS, profile=True)
    threads = [threading.Thread(target=lambda: [run(X) for _ in range(200)]) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(k.calls == 600 for k in run.profile().kernels)
    assert len(run.profile().events) == 1200


def test_a_trace_can_be_read(tmp_path):
    run = cyxla.compile(TWO_KERNELS, profile=True)
    run(X)
    run(X)
    run.profile().save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["cat"] for e in events] == ["dot", "reduce"] * 2
    assert {e["ph"] for e in events} == {"X"}
    for before, after in pairwise(events):
        assert before["ts"] + before["dur"] <= after["ts"] + 1e-3
    total = sum(k.ns for k in run.profile().kernels)
    assert sum(e["dur"] for e in events) == pytest.approx(total / 1e3)


def test_a_table():
    kernel = KernelTime("k0", "dot", "dot f32[2]", 4, 2_000_000, 1_000_000.0, 8_000_000)
    lines = str(Profile((kernel,))).splitlines()
    assert lines[1].split() == ["k0", "dot", "4", "2000.0", "100.0", "1000.0", "4.00", "dot", "f32[2]"]
    assert str(Profile(())).splitlines()[-1].split() == ["all", "0", "0.0"]
    assert KernelTime("k0", "loop", "", 0, 0, 0.0, 0).bandwidth == 0
