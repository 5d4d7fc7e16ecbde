"""Names of devices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework import DeviceBase, DeviceName, TensorValue
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError

NAMES = [
    ("/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"),
    ("/cpu:0", "/device:CPU:0"),
    ("/gpu:1", "/device:GPU:1"),
    ("CPU:0", "/device:CPU:0"),
    ("/device:XLA_CPU_JIT", "/device:XLA_CPU_JIT:*"),
    ("/device:GPU:*", "/device:GPU:*"),
    ("/job:*/replica:*/task:*/device:*:*", ""),
    ("/task:1/job:w", "/job:w/task:1"),
    ("", ""),
    ("/", ""),
]


@pytest.mark.parametrize("text, full", NAMES)
def test_parse(text, full):
    assert str(DeviceName.parse(text)) == full


@pytest.mark.parametrize("text", ["x", "/job:0", "/replica:x", "/device:CPU:x", "//", "/cpu:0 ", "/task:0x"])
def test_bad_names(text):
    with pytest.raises(InvalidArgumentError, match="not the name of a device"):
        DeviceName.parse(text)


KINDS = ("job", "replica", "task", "type", "id")
names = st.builds(
    DeviceName,
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, "CPU", "GPU"]),
    st.sampled_from([None, 0, 1]),
)


@given(names)
def test_names_are_read_as_written(name):
    assert DeviceName.parse(str(name)) == name


@given(names, names)
def test_merged_names_have_the_parts_of_both(one, two):
    try:
        merged = one.merge(two)
    except InvalidArgumentError:
        assert any(None not in pair and pair[0] != pair[1] for pair in one._pairs(two))
        return
    assert merged == two.merge(one)
    for name in (one, two):
        assert name.override(merged) == merged


@given(names, names)
def test_a_soft_merge_gives_way_in_type_and_number(one, two):
    clash = {kind for kind, pair in zip(KINDS, one._pairs(two), strict=True) if None not in pair and pair[0] != pair[1]}
    if clash & {"job", "replica", "task"}:
        with pytest.raises(InvalidArgumentError):
            one.merge(two, allow_soft=True)
        return
    merged = one.merge(two, allow_soft=True)
    if "type" in clash:
        assert (merged.type, merged.id) == (None, None)
    elif "id" in clash:
        assert (merged.type, merged.id) == (one.type or two.type, None)
    else:
        assert merged == one.merge(two)


def test_matching():
    full = DeviceName.parse("/job:localhost/replica:0/task:0/device:CPU:0")
    assert full.is_complete
    assert DeviceName.parse("/cpu:0").matches(full)
    assert DeviceName().matches(full)
    assert not DeviceName.parse("/gpu:0").matches(full)
    assert not DeviceName.parse("/cpu:0").is_complete


def test_a_device():
    """Constants are made by the device, and are never written to."""
    device = DeviceBase()
    assert device.parsed_name.type == device.device_type == "CPU"
    array = np.ones(3, np.float32)
    constant = device.make_tensor(TensorValue(DataType.DT_FLOAT, array))
    assert constant.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        constant[0] = 2
