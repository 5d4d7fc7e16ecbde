"""Custom calls of Python functions: arguments, results, exceptions."""

import threading

import numpy as np
import pytest

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.xla.evaluator.custom_calls import register_custom_call, unregister_custom_call

TEXT = """ENTRY e {
  x = f32[4] parameter(0)
  y = s32[] parameter(1)
  twice = f32[4] add(x, x)
  t = (f32[4], s32[]) custom-call(twice, y), custom_call_target="split"
  a = f32[4] get-tuple-element(t), index=0
  ROOT r = f32[4] multiply(a, a)
}"""


def compiled(function, text=TEXT):
    return cyxla.compile(text, custom_calls={"split": function})


def test_a_function_of_the_program():
    seen = []

    def split(ev, ins, x, y):
        seen.append((ins.opcode, x.dtype, x.flags.writeable, int(y)))
        return x + y, y

    run = compiled(split)
    np.testing.assert_array_equal(run(np.arange(4, dtype="f4"), 3), (2 * np.arange(4) + 3) ** 2)
    assert seen == [("custom-call", np.dtype("f4"), False, 3)]
    assert "python (slow)" in run.explain()
    bound = run.bind({1: np.int32(1)})
    np.testing.assert_array_equal(bound(np.ones(4, "f4")), [9] * 4)


def test_a_registered_function():
    register_custom_call("split", lambda ev, ins, x, y: (x, y), replace=True)
    try:
        np.testing.assert_array_equal(cyxla.compile(TEXT)(np.ones(4, "f4"), 0), [4] * 4)
    finally:
        unregister_custom_call("split")
    with pytest.raises(UnimplementedError, match="split"):
        cyxla.compile(TEXT)


def test_exceptions_reach_the_calling_thread():
    def split(ev, ins, x, y):
        if y < 0:
            raise KeyError(int(y))
        return x, y

    run, x, failures = compiled(split), np.ones(4, "f4"), {}

    def call(y):
        try:
            run(x, y)
        except KeyError as error:
            failures[y] = error.args

    threads = [threading.Thread(target=call, args=(y,)) for y in (-1, 1, -2, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == {-1: (-1,), -2: (-2,)}
    np.testing.assert_array_equal(run(x, 0), [4] * 4)


def test_a_wrong_shape_is_refused():
    with pytest.raises(cyxla.errors.OpError):
        compiled(lambda ev, ins, x, y: (x[:2], y))(np.ones(4, "f4"), 0)


def test_calls_with_effects_run_even_if_unused():
    seen = []
    text = """ENTRY e {
      x = f32[2] parameter(0)
      t = () custom-call(x), custom_call_target="split", custom_call_has_side_effect=true
      ROOT r = f32[2] add(x, x)
    }"""

    def split(ev, ins, x):
        seen.append(x.tolist())
        return ()

    compiled(split, text)(np.ones(2, "f4"))
    assert seen == [[1.0, 1.0]]


def test_targets_that_the_evaluator_knows():
    text = 'ENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] custom-call(x), custom_call_target="mhlo.erf" }'
    got = cyxla.compile(text)(np.array([0, 1, 2], "f4"))
    np.testing.assert_allclose(got, [0, 0.8427008, 0.9953223], rtol=1e-6)


def test_the_interpreter_is_named_where_it_helps():
    """An operation that only it runs; a custom call beside it that nobody knows has to be mended first."""
    text = """ENTRY e {
      x = f32[3] parameter(0)
      y = f32[<=3] custom-call(x), custom_call_target="TARGET"
      ROOT r = s32[] get-dimension-size(y), dimensions={0}
    }"""
    with pytest.raises(UnimplementedError, match="no native code") as caught:
        cyxla.compile(text, custom_calls={"TARGET": lambda ev, ins, x: x[:2]})
    assert "interpreter" in caught.value.hint
    assert "TARGET" not in caught.value.hint
    with pytest.raises(UnimplementedError, match="custom-call with dynamic dimensions") as caught:
        cyxla.compile(text)
    assert "'TARGET' is not registered: register it by cyxla.register_custom_call; then run" in caught.value.hint
    run = cyxla.compile(text, platform="interpreter", custom_calls={"TARGET": lambda ev, ins, x: x[:2]})
    assert run(np.float32([1, 2, 3])) == 2
