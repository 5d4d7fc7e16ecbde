"""Random numbers that TensorFlow's documentation and tests state for a seed."""

import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op

PHILOX = np.int64(1)
#: Seed of `tf.random.Generator.from_seed`: what `normal(shape=(2, 3))` gives at first and then.
NORMAL = {
    1234: [
        [[0.9356609, 1.0854305, -0.93788373], [-0.50615472, 1.31697023, 0.71375787]],
        [[-0.3964749, 0.8369565, -0.30946946], [1.1206646, 1.00852597, -0.10185789]],
    ],
    123: [[[0.8673864, -0.29899067, -0.9310337], [-1.5828488, 1.2481191, -0.6770643]]],
}


def generator(seed):
    handle = apply_op("VarHandleOp", dtype="int64", shape=[3], shared_name=f"generator{seed}")
    apply_op("AssignVariableOp", handle, np.array([seed, 0, 0], np.int64))
    return handle


@pytest.mark.parametrize("seed", NORMAL)
def test_normal_numbers_of_a_generator(seed):
    state = generator(seed)
    for count, wanted in enumerate(NORMAL[seed], 1):
        found = apply_op("StatefulStandardNormalV2", state, PHILOX, np.int32([2, 3]))
        np.testing.assert_array_max_ulp(found, np.float32(wanted), 2)
        assert apply_op("ReadVariableOp", state, dtype="int64").tolist() == [seed + 1536 * count, 0, 0]


def test_uniform_numbers_follow_the_normal_ones_of_a_generator():
    state = generator(1234)
    apply_op("StatefulStandardNormalV2", state, PHILOX, np.int32([2, 3]))
    found = apply_op("StatefulUniform", state, PHILOX, np.int32([3]))
    np.testing.assert_array_equal(found, np.float32([0.6512613, 0.9295906, 0.50873387]))


def test_numbers_of_a_seed():
    found = apply_op("StatelessRandomNormal", np.int32([2, 3]), np.int32([1, 2]))
    wanted = np.float32([[0.5441101, 0.20738031, 0.07356433], [0.04643455, -1.30159, -0.95385665]])
    np.testing.assert_array_max_ulp(found, wanted, 4)
