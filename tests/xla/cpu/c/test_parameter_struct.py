"""Structs of integers: the C type, the numbers in its order, and constants of it."""

import pytest

from cyxla.xla.cpu.c.parameter_struct import ParameterStruct

SIZES = ParameterStruct(("step", "n", "m"))


def test_c_and_numbers_have_one_order():
    assert SIZES.typedef("k_sizes") == "typedef struct { int64_t step, n, m; } k_sizes;"
    assert SIZES.numbers({"step": 3, "m": 1}) == [3, 0, 1]


@pytest.mark.parametrize("values, members", [({"step": -3, "m": 0}, ".step = -3"), ({}, "0")])
def test_constants_show_nonzero_fields(values, members):
    assert SIZES.constant("k_sizes", "k_known", values) == f"static const k_sizes k_known = {{{members}}};"


def test_a_name_that_is_no_member_is_an_error():
    with pytest.raises(KeyError, match="width"):
        SIZES.numbers({"width": 1})
