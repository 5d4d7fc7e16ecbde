"""Operations across the devices of a process."""

import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.errors import DeadlineExceededError, InvalidArgumentError, OpError

F = np.float32


def reduced(graph, values, merge="Add", final="Id", *, size=None, key=1, instance=1):
    """One contribution on each device."""
    results = []
    for k, value in enumerate(values):
        with graph.as_default(), graph.device(f"/device:CPU:{k}"):
            args = [np.int32(v) for v in (size or len(values), key, instance)]
            results.append(apply_op("CollectiveReduceV2", value, *args, [], merge_op=merge, final_op=final))
    return results


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("merge, final, wanted", [
    ("Add", "Id",  lambda v: v.sum(0)),
    ("Add", "Div", lambda v: v.sum(0) / len(v)),
    ("Mul", "Id",  lambda v: v.prod(0)),
    ("Min", "Id",  lambda v: v.min(0)),
    ("Max", "Id",  lambda v: v.max(0)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_all_devices_get_the_reduction(count, merge, final, wanted, dtype):
    graph = Graph()
    values = np.arange(1, 3 * count + 1).reshape(count, 3).astype(dtype)
    results = reduced(graph, list(values), merge, final)
    session = Session(graph, devices={"CPU": count})
    for _ in range(2):
        for result in session.run(results):
            np.testing.assert_array_equal(result, wanted(values).astype(dtype))


def test_integers_are_divided_toward_zero():
    graph = Graph()
    results = reduced(graph, [np.int32([-5, 5]), np.int32([0, 0])], "Add", "Div")
    assert [r.tolist() for r in Session(graph, devices={"CPU": 2}).run(results)] == [[-2, 2]] * 2


def test_instances_and_groups_are_separate():
    graph = Graph()
    results = [
        result
        for key, instance in ((1, 1), (1, 2), (2, 1))
        for result in reduced(graph, [F(key), F(instance * 10)], key=key, instance=instance)
    ]
    assert [float(r) for r in Session(graph, devices={"CPU": 2}).run(results)] == [11, 11, 21, 21, 12, 12]


@pytest.mark.parametrize("values, size, message", [
    ([F([1, 2]), F([1, 2, 3])], 2, "members of a group differ"),
    ([F(1)],                    0, "group_size must be positive integer but got 0"),
])  # fmt: skip
def test_errors(values, size, message):
    graph = Graph()
    results = reduced(graph, values)
    if size == 0:
        with graph.as_default():
            args = [np.int32(v) for v in (0, 1, 1)]
            results = [apply_op("CollectiveReduceV2", values[0], *args, [], merge_op="Add", final_op="Id")]
    with pytest.raises(InvalidArgumentError, match=message):
        Session(graph, devices={"CPU": len(values)}).run(results)


def test_a_missing_member_is_waited_for_until_the_deadline():
    graph = Graph()
    (result,) = reduced(graph, [F(1)], size=2)
    with pytest.raises(DeadlineExceededError):
        Session(graph).run(result, options=RunOptions(timeout=0.05))


def test_a_missing_member_is_waited_for_until_the_timeout_of_the_node():
    graph = Graph()
    with graph.as_default():
        args = [np.int32(v) for v in (2, 1, 1)]
        attrs = {"merge_op": "Add", "final_op": "Id", "timeout_seconds": 0.05}
        result = apply_op("CollectiveReduceV2", F(1), *args, [], **attrs)
    with pytest.raises(DeadlineExceededError, match="Collective has timed out waiting for other workers"):
        Session(graph).run(result)


@pytest.mark.parametrize("device, wanted", [(0, (2, 7)), (1, (2, 8)), (2, (2, 7)), (3, (2, 8)), (4, None)])
def test_the_group_of_a_device(device, wanted):
    args = (np.int32([[0, 2], [1, 3]]), np.int32(device), np.int32(7))
    if wanted is None:
        with pytest.raises(OpError, match="device_index 4 is not found in group_assignment"):
            apply_op("CollectiveAssignGroupV2", *args)
    else:
        assert tuple(map(int, apply_op("CollectiveAssignGroupV2", *args))) == wanted


def test_all_reduce_by_name():
    graph, results = Graph(), []
    for k in range(2):
        with graph.as_default(), graph.device(f"/device:CPU:{k}"):
            results.append(apply_op("NcclAllReduce", F([k, 3]), reduction="max", num_devices=2, shared_name="r"))
    assert [r.tolist() for r in Session(graph, devices={"CPU": 2}).run(results)] == [[1, 3]] * 2
