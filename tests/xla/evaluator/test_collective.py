"""Collectives: alone they are identities, together they meet."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.evaluator import Options
from cyxla.xla.evaluator.ops.collective import explicit_groups
from cyxla.xla.hlo.attributes import IotaTiles, ReplicaGroups

X = np.arange(4, dtype=np.float32)
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"


def program(body):
    return ADD + "ENTRY main { x = f32[4] parameter(0) ROOT r = " + body + " }"


# fmt: off
ALONE = [
    "f32[4] all-reduce(x), replica_groups={}, to_apply=add",
    "f32[4] all-reduce(x), channel_id=1, replica_groups={{0}}, use_global_device_ids=true, to_apply=add",
    "f32[4] all-gather(x), replica_groups={{0}}, dimensions={0}",
    "f32[4] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=add",
    "f32[4] all-to-all(x), replica_groups={{0}}, dimensions={0}",
    "f32[4] collective-permute(x), source_target_pairs={{0,0}}",
    "f32[4] collective-broadcast(x), replica_groups={{0}}",
]
STARTED = [
    ("f32[4]", "all-reduce", "replica_groups={}, to_apply=add"),
    ("(f32[4], f32[4])", "all-gather", "replica_groups={{0}}, dimensions={0}"),
    ("(f32[4], f32[4])", "collective-permute", "source_target_pairs={{0,0}}"),
]
# fmt: on


@pytest.mark.parametrize("body", ALONE, ids=lambda b: b.split()[1].split("(")[0])
def test_one_device_is_the_identity(hlo, body):
    np.testing.assert_array_equal(hlo(program(body), X), X)


@pytest.mark.parametrize("started, name, attrs", STARTED)
def test_started_forms_end_in_the_result(hlo, started, name, attrs):
    text = (
        ADD + f"ENTRY main {{ x = f32[4] parameter(0) s = {started} {name}-start(x), {attrs} "
        f"ROOT r = f32[4] {name}-done(s) }}"
    )
    np.testing.assert_array_equal(hlo(text, X), X)


def test_who_receives_nothing_gets_zeros(hlo):
    np.testing.assert_array_equal(hlo(program("f32[4] collective-permute(x), source_target_pairs={}"), X), 0 * X)


def test_tuple_forms(hlo):
    got = hlo(program("(f32[4], f32[4]) all-reduce(x, x), replica_groups={}, to_apply=add"), X)
    np.testing.assert_array_equal(got, (X, X))
    np.testing.assert_array_equal(hlo(program("(f32[4]) all-to-all(x), replica_groups={{0}}"), X), (X,))


@pytest.mark.parametrize(
    "attrs", ["replica_groups={{0,1}}", "channel_id=1, replica_groups={{3}}, use_global_device_ids=true"]
)
def test_devices_that_do_not_exist(hlo, attrs):
    with pytest.raises(InvalidArgumentError, match=r"names device [13]; this run has 1"):
        hlo(program(f"f32[4] all-reduce(x), {attrs}, to_apply=add"), X)


def test_collectives_need_a_rendezvous(hlo):
    with pytest.raises(UnimplementedError, match="over 2 devices"):
        hlo(program(ALONE[0]), X, options=Options(replica_count=2))


def run_all(hlo, text, inputs, replicas, partitions):
    """Run a program on each device; the rendezvous knows all operands, as the programs just pass them on."""
    results = []
    for device in range(replicas * partitions):
        options = Options(
            replica_count=replicas, num_partitions=partitions,
            replica=device // partitions, partition=device % partitions,
            rendezvous=lambda ins, devices, operands: [inputs[d] for d in devices],
        )  # fmt: skip
        results.append(hlo(text, *inputs[device], options=options))
    return results


A, B, C, D = ((X + 10 * n,) for n in range(4))
REDUCE, EVERYTHING = "f32[4] all-reduce(x), to_apply=add, ", [*A[0], *B[0], *C[0], *D[0]]
# fmt: off
TOGETHER = [
    # body                                                        replicas, partitions, results of the first and last
    (REDUCE + "replica_groups={}",                                               4, 1, 4 * X + 60, 4 * X + 60),
    (REDUCE + "replica_groups={{0,2},{1,3}}",                                    4, 1, 2 * X + 20, 2 * X + 40),
    (REDUCE + "replica_groups={}",                                               2, 2, 2 * X + 20, 2 * X + 40),
    (REDUCE + "channel_id=1, replica_groups={{0},{1}}",                          2, 2, 2 * X + 10, 2 * X + 50),
    (REDUCE + "channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true",
                                                                                 2, 2, 2 * X + 30, 2 * X + 30),
    ("f32[1] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add", 4, 1, [60], [72]),
    ("f32[16] all-gather(x), replica_groups=[1,4]<=[4], dimensions={0}",         4, 1, EVERYTHING, EVERYTHING),
    ("f32[4] all-to-all(x), replica_groups={}, dimensions={0}",                  4, 1, X * 10, X * 10 + 3),
    ("f32[4] collective-permute(x), source_target_pairs={{0,3},{3,1}}",          4, 1, 0 * X, X),
    ("f32[4] collective-broadcast(x), replica_groups={{2,0}}",                   4, 1, X + 20, 0 * X),
]
# fmt: on


@pytest.mark.parametrize("body, replicas, partitions, first, last", TOGETHER)
def test_devices_meet(hlo, body, replicas, partitions, first, last):
    results = run_all(hlo, program(body), [A, B, C, D], replicas, partitions)
    np.testing.assert_array_equal(results[0], first)
    np.testing.assert_array_equal(results[-1], last)


RAGGED = """
ENTRY main {
  x = f32[4,2] parameter(0)
  out = f32[6,2] parameter(1)
  from = TYPE[SHAPE] parameter(2)
  sizes = TYPE[SHAPE] parameter(3)
  to = TYPE[SHAPE] parameter(4)
  got = TYPE[SHAPE] parameter(5)
  ROOT r = f32[6,2] ragged-all-to-all(x, out, from, sizes, to, got), replica_groups={}
}
"""
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
SLICES = [
    # starts, sizes, targets, and the row of the source for each row of the result
    ([0], [4], [1], [-1, 0, 1, 2, 3, -1]), ([2], [2], [0], [2, 3, -1, -1, -1, -1]), ([1], [0], [3], [-1] * 6),
    ([0, 2], [2, 2], [4, 0], [2, 3, -1, -1, 0, 1]), ([0, 1], [3, 3], [0, 2], [0, 1, 1, 2, 3, -1]),  # the later wins
    ([2], [4], [1], [-1, 2, 3, -1, -1, -1]), ([0], [4], [4], [-1, -1, -1, -1, 0, 1]),  # clipped at an end
    ([-1], [3], [2], [-1, -1, -1, 0, 1, -1]), ([0], [3], [-2], [2, -1, -1, -1, -1, -1]), ([9], [2], [9], [-1] * 6),
    ([], [], [], [-1] * 6),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["s32", "s64", "batch"])
@pytest.mark.parametrize("starts, sizes, targets, rows", SLICES)
def test_ragged_all_to_all_of_one_device(backend, dtype, starts, sizes, targets, rows):
    shape = f"1,{len(starts)}" if dtype == "batch" else f"{len(starts)}"
    text = RAGGED.replace("TYPE", "s32" if dtype == "batch" else dtype).replace("SHAPE", shape)
    plan = [np.array(v, np.int64 if dtype == "s64" else np.int32) for v in (starts, sizes, targets, sizes)]
    plan = [p[None] if dtype == "batch" else p for p in plan]
    blank = np.full((6, 2), -1, np.float32)
    want = np.array([ROWS[r] if r >= 0 else blank[0] for r in rows])
    np.testing.assert_array_equal(cyxla.compile(text, platform=backend)(ROWS, blank, *plan), want)


def test_ragged_all_to_all(hlo):
    text = """
    ENTRY main {
      x = f32[4] parameter(0)
      out = f32[6] parameter(1)
      from = s32[2] parameter(2)
      sizes = s32[2] parameter(3)
      to = s32[2] parameter(4)
      got = s32[2] parameter(5)
      ROOT r = f32[6] ragged-all-to-all(x, out, from, sizes, to, got), replica_groups={{0,1}}
    }
    """
    blank = np.full(6, -1, np.float32)
    one = (X, blank, *(np.array(v, np.int32) for v in ([0, 1], [1, 3], [0, 0], [1, 2])))
    two = (X + 10, blank, *(np.array(v, np.int32) for v in ([0, 2], [2, 1], [1, 5], [3, 1])))
    first, second = run_all(hlo, text, [one, two], 2, 1)
    np.testing.assert_array_equal(first, [0, 10, 11, -1, -1, -1])
    np.testing.assert_array_equal(second, [1, 2, 3, -1, -1, 12])


def test_ids(hlo):
    text = "ENTRY main { r = u32[] replica-id() p = u32[] partition-id() ROOT t = (u32[], u32[]) tuple(r, p) }"
    assert hlo(text, options=Options(replica=3, partition=2)) == (3, 2)


@pytest.mark.parametrize(
    "groups, want",
    [
        (ReplicaGroups(((0, 1), (2,))), [(0, 1), (2,)]),
        (ReplicaGroups(iota=IotaTiles((2, 2), (4,))), [(0, 1), (2, 3)]),
        (ReplicaGroups(iota=IotaTiles((2, 2), (2, 2), (1, 0))), [(0, 2), (1, 3)]),
    ],
)
def test_groups_are_written_out(groups, want):
    assert explicit_groups(groups) == want
