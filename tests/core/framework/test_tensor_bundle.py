"""Checkpoints: tensors survive a round trip, slices are assembled, and damage is detected."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework.checkpoint.crc32c import _extend, crc32c, mask
from cyxla.core.framework.checkpoint.sorted_table import read_table, unpack_snappy, write_table
from cyxla.core.framework.checkpoint.tensor_bundle import (
    BundleReader,
    SavedPiece,
    slice_key,
    write_bundle,
    write_pieces,
)
from cyxla.core.framework.types import DataType
from cyxla.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError

TENSORS = {
    "a/weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/bias": np.zeros((0, 4), np.float64),
    "scalar": np.array(7, np.int64),
    "flags": np.array([True, False]),
    "brain": np.array([1.5, -2], ml_dtypes.bfloat16),
    "texts": np.array([[b"", b"two"], [b"\0three", b"x" * 300]], object),
    "wave": np.array([1 + 2j], np.complex64),
    "umlaut ü": np.array([3], np.int32),
}


def test_checkpoints_survive_a_round_trip(tmp_path):
    prefix = tmp_path / "deep" / "model"
    write_bundle(prefix, TENSORS)
    reader = BundleReader(prefix)
    assert reader.names() == sorted(TENSORS)
    for name, want in TENSORS.items():
        found = reader.read(name)
        assert found.dtype == want.dtype
        assert found.shape == want.shape
        assert found.tolist() == want.tolist()
    assert "scalar" in reader
    with pytest.raises(NotFoundError, match="nope"):
        reader.read("nope")
    with pytest.raises(NotFoundError, match="gone"):
        BundleReader(tmp_path / "gone")


def test_quantised_types_keep_their_names(tmp_path):
    write_bundle(tmp_path / "q", {"x": np.int8([1, 2])}, {"x": DataType.DT_QINT8})
    assert BundleReader(tmp_path / "q").entry("x").dtype == DataType.DT_QINT8


def test_slices_make_a_whole(tmp_path):
    whole = np.arange(20, dtype=np.float32).reshape(4, 5)
    halves = [((0, 2), (0, -1)), ((2, 2), (0, -1))]
    pieces = [SavedPiece("w", whole[s : s + n], None, (4, 5), ((s, n), rest)) for (s, n), rest in halves]
    write_pieces(tmp_path / "s", pieces)
    reader = BundleReader(tmp_path / "s")
    assert reader.names() == ["w"]
    np.testing.assert_array_equal(reader.read("w"), whole)
    np.testing.assert_array_equal(reader.read_slice("w", [(1, 2), (3, -1)]), whole[1:3, 3:])
    np.testing.assert_array_equal(reader.read_slice("w", [(0, 1), (1, 2)]), whole[:1, 1:3])
    with pytest.raises(InvalidArgumentError, match="outside"):
        reader.read_slice("w", [(3, 2), (0, -1)])
    write_pieces(tmp_path / "t", pieces[:1])
    np.testing.assert_array_equal(BundleReader(tmp_path / "t").read_slice("w", [(1, 1), (0, -1)]), whole[1:2])
    with pytest.raises(DataLossError, match="lacks"):
        BundleReader(tmp_path / "t").read_slice("w", [(1, 2), (0, 1)])
    with pytest.raises(DataLossError, match="lacks"):
        BundleReader(tmp_path / "t").read("w")


def test_keys_of_slices_stand_in_order():
    numbers = [-1, 0, 1, 63, 64, 8191, 8192, 2**20, 2**40, 2**55, 2**62]
    keys = [slice_key("v", [(n, 1)]) for n in numbers[1:]]
    assert keys == sorted(keys)
    assert slice_key("v", [(0, -1)]) == b"\x00v\x00\x01\x01\x01\x80\x7f"
    assert slice_key("a\0b\xff", []) != slice_key("a", [])


@pytest.mark.parametrize("place", [0, 1, 5, 20, -1, -9, -30, -49])
def test_damage_is_found(tmp_path, place):
    write_bundle(tmp_path / "m", TENSORS)
    for suffix in ("index", "data-00000-of-00001"):
        path = tmp_path / f"m.{suffix}"
        good = path.read_bytes()
        bad = bytearray(good)
        bad[place] ^= 0x41
        path.write_bytes(bytes(bad))
        with pytest.raises(OpError):
            read_all(tmp_path / "m", bytes(bad) != good)
        path.write_bytes(good[:-1])
        with pytest.raises(OpError):
            read_all(tmp_path / "m", True)
        path.write_bytes(good)


def read_all(prefix, changed):
    reader = BundleReader(prefix)
    found = {name: reader.read(name) for name in reader.names()}
    if all(found[name].tolist() == TENSORS[name].tolist() for name in TENSORS):
        raise DataLossError("a byte that nothing depends on")  # such as the padding of the footer
    assert not changed, "damage went unseen"


@given(st.dictionaries(st.binary(max_size=40), st.binary(max_size=3000), max_size=60))
def test_tables_survive_a_round_trip(entries):
    assert read_table(write_table(entries.items())) == entries


@given(st.binary(max_size=300), st.binary(max_size=40000))
def test_checksum_goes_on_where_it_stopped(first, second):
    assert crc32c(second, crc32c(first)) == _extend(0xFFFFFFFF, first + second) ^ 0xFFFFFFFF
    assert mask(0) == 0xA282EAD8


def test_snappy():
    # 11 bytes: a literal "abcd", a copy of 4 from 4 back, a copy of 3 from 1 back that repeats itself
    packed = bytes([11, 3 << 2]) + b"abcd" + bytes([0b000_000_01, 4]) + bytes([2 << 2 | 2, 1, 0])
    assert unpack_snappy(packed) == b"abcdabcdddd"
    with pytest.raises(DataLossError, match="before"):
        unpack_snappy(bytes([4, 0b000_000_01, 9]))
    with pytest.raises(DataLossError, match="length"):
        unpack_snappy(bytes([9, 0, 65]))
