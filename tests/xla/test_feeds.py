"""Transfers of running programs: infeed and outfeed queues, channels of send and recv, on both platforms."""

import math
import pickle
import re
import signal
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.interrupts import sending

import cyxla
from cyxla.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnimplementedError,
)
from cyxla.types import Shape
from cyxla.xla.feeds import Feeds
from cyxla.xla.hlo import parse_module
from cyxla.xla.service import Executable
from cyxla.xla.stablehlo import read_stablehlo, write_stablehlo

PAIR = """
ENTRY main {
  t = token[] after-all()
  in = ((f32[2], s32[]), token[]) infeed(t)
  data = (f32[2], s32[]) get-tuple-element(in), index=0
  after = token[] get-tuple-element(in), index=1
  x = f32[2] get-tuple-element(data), index=0
  twice = f32[2] add(x, x)
  out = token[] outfeed(twice, after), outfeed_shape=f32[2]
  ROOT n = s32[] get-tuple-element(data), index=1
}
"""


@pytest.fixture
def build(backend):
    def compile(text, **options):
        options.setdefault("feeds", Feeds(timeout=20))
        return cyxla.compile(text, platform=backend, **options)

    return compile


# --- infeed and outfeed ---


def test_values_come_in_and_go_out(build):
    run = build(PAIR)
    for n in range(3):
        run.infeed(([n, n + 1], n))
    for n in range(3):
        assert run() == n
    for n in range(3):
        got = run.outfeed()
        np.testing.assert_array_equal(got, np.float32([2 * n, 2 * n + 2]))
        assert got.dtype == np.float32
        assert got.flags.writeable


VALUES = {
    "pred": np.array([True, False]), "s4": np.array([-8, 7], ml_dtypes.int4), "s64": np.array([-(2**63), 2**63 - 1]),
    "u8": np.arange(6, dtype=np.uint8).reshape(2, 3)[:, ::2], "bf16": np.array([1.5, np.nan], ml_dtypes.bfloat16),
    "f8e4m3fn": np.array([0.5, 448], ml_dtypes.float8_e4m3fn), "f16": np.float16(65504),
    "f32": np.float32([-0.0, np.inf]),
    "f64": np.zeros((0, 3)), "c64": np.array([[1 + 2j, np.nan]], np.complex64).T, "c128": np.complex128(1j),
}  # fmt: skip


@pytest.mark.parametrize("dtype", VALUES)
def test_every_type_arrives_unchanged(build, dtype):
    x = VALUES[dtype]
    shape = Shape.array(dtype, x.shape).to_text(layout=False)
    text = f"""ENTRY e {{ t = token[] after-all() in = ({shape}, token[]) infeed(t)
      x = {shape} get-tuple-element(in), index=0 k = token[] get-tuple-element(in), index=1
      o = token[] outfeed(x, k), outfeed_shape={shape} ROOT r = {shape} copy(x) }}"""
    run = build(text)
    run.infeed(x)
    for got in (run(), run.outfeed()):
        assert (got.dtype, got.shape) == (x.dtype, x.shape)
        assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(x).tobytes()


LOOP = """
more { s = (s32[], f32[], token[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5) ROOT p = pred[] compare(i, n), direction=LT }
step {
  s = (s32[], f32[], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  total = f32[] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  in = (f32[], token[]) infeed(t)
  x = f32[] get-tuple-element(in), index=0
  t1 = token[] get-tuple-element(in), index=1
  sum = f32[] add(total, x)
  t2 = token[] outfeed(sum, t1), outfeed_shape=f32[]
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[], token[]) tuple(j, sum, t2)
}
ENTRY e {
  zero = s32[] constant(0)
  none = f32[] constant(0)
  t = token[] after-all()
  s = (s32[], f32[], token[]) tuple(zero, none, t)
  w = (s32[], f32[], token[]) while(s), condition=more, body=step
  ROOT r = f32[] get-tuple-element(w), index=1
}"""


def test_a_loop_takes_a_value_in_each_iteration(build):
    run = build(LOOP)
    for x in (1, 10, 100, 1000, 10000):
        run.infeed(x)
    assert run() == 11111
    assert [float(run.outfeed()) for _ in range(5)] == [1, 11, 111, 1111, 11111]


def test_the_state_of_a_loop_that_is_not_read_still_has_effects(build):
    run = build(LOOP.replace("ROOT r = f32[] get-tuple-element(w), index=1", "ROOT r = f32[] constant(3)"))
    for x in range(5):
        run.infeed(x)
    assert run() == 3
    assert [float(run.outfeed()) for _ in range(5)] == [0, 1, 3, 6, 10]


def test_called_computations_have_their_effects_once_for_each_call(build):
    text = """
    tell { x = f32[] parameter(0) t = token[] parameter(1) ROOT o = token[] outfeed(x, t), outfeed_shape=f32[] }
    ENTRY e { t = token[] after-all() a = f32[] constant(1) b = f32[] constant(2)
      t1 = token[] call(a, t), to_apply=tell t2 = token[] call(b, t1), to_apply=tell
      ROOT t3 = token[] call(a, t2), to_apply=tell }"""
    run = build(text)
    run()
    assert [float(run.outfeed()) for _ in range(3)] == [1, 2, 1]
    with pytest.raises(DeadlineExceededError):
        run.outfeed(timeout=0)


def test_branches_have_the_effects_of_the_one_that_runs(build):
    text = """
    one { t = token[] parameter(0) x = s32[] constant(1) ROOT o = token[] outfeed(x, t), outfeed_shape=s32[] }
    two { t = token[] parameter(0) x = s32[] constant(2) ROOT o = token[] outfeed(x, t), outfeed_shape=s32[] }
    ENTRY e { p = pred[] parameter(0) t = token[] after-all()
      ROOT c = token[] conditional(p, t, t), true_computation=one, false_computation=two }"""
    run = build(text)
    run(True), run(False), run(False)
    assert [int(run.outfeed()) for _ in range(3)] == [1, 2, 2]


def test_effects_keep_their_order_around_kernels_that_work_in_place(build):
    """The update waits for the sum, which reads the array that it overwrites; the second outfeed must wait too."""
    text = """
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e {
      p = f32[4] parameter(0)
      x = f32[4] exponential(p)
      zero = s32[] constant(0)
      nought = f32[] constant(0)
      seven = f32[1] constant({7})
      new = f32[4] dynamic-update-slice(x, seven, zero)
      t = token[] after-all()
      t1 = token[] outfeed(new, t), outfeed_shape=f32[4]
      n = s32[] constant(2)
      t2 = token[] outfeed(n, t1), outfeed_shape=s32[]
      sum = f32[] reduce(x, nought), dimensions={0}, to_apply=add
      ROOT r = (token[], f32[]) tuple(t2, sum)
    }"""
    run = build(text)
    assert run(np.zeros(4, np.float32))[1] == 4
    np.testing.assert_array_equal(run.outfeed(), [7, 1, 1, 1])
    assert run.outfeed() == 2


def test_a_program_waits_for_the_host(build):
    run = build(PAIR)
    found = []
    thread = threading.Thread(target=lambda: found.append(int(run())))
    thread.start()
    run.infeed(([1, 2], 5))
    np.testing.assert_array_equal(run.outfeed(), [2, 4])
    thread.join()
    assert found == [5]


def test_a_full_queue_makes_the_program_wait(build):
    run = build(LOOP, feeds=Feeds(timeout=20, capacity=1))
    thread = threading.Thread(target=run)
    thread.start()
    for n in range(5):
        run.infeed(1)
        assert run.outfeed() == n + 1
    thread.join()


WITHOUT_INFEED = LOOP.replace("infeed(t)", "tuple(total, t)")


@pytest.mark.parametrize("text, message", [
    (LOOP, "the infeed queue: the host queued no value"),
    (WITHOUT_INFEED, "the outfeed queue: it holds 2 values already"),
])  # fmt: skip
def test_waiting_has_a_limit(build, text, message):
    with pytest.raises(DeadlineExceededError, match=f"waited 0.01 s for {message}"):
        build(text, feeds=Feeds(timeout=0.01, capacity=2))()


def test_the_host_waits_no_longer_than_it_says(build):
    run = build(PAIR, feeds=Feeds(timeout=math.inf))
    with pytest.raises(DeadlineExceededError, match="no program sent a value"):
        run.outfeed(timeout=0.01)


def test_ctrl_c_ends_the_wait_of_a_program(build):
    run = build(PAIR, feeds=Feeds(timeout=math.inf))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with sending(signal.SIGINT), pytest.raises(KeyboardInterrupt):
            run()
    finally:
        signal.signal(signal.SIGINT, before)
    run.infeed(([1, 2], 4))  # which the next run takes
    assert run() == 4


WRONG = [
    (([1, 2, 3], 0), r"infeed\[0\]: got .*want float32\[2\]"), (np.float32([1, 2]), "want \\(f32\\[2\\], s32\\[\\]\\)"),
    ((np.zeros(2), 0), r"infeed\[0\]: got float64\[2\], want float32\[2\]"), (([1, 2], 0.5), r"infeed\[1\]"),
    (([1, 2], 0, 0), "a tuple of 3"), (([1, 2], 2**40), "out of range"), (("ab", 0), r"infeed\[0\]"),
]  # fmt: skip


@pytest.mark.parametrize("value, message", WRONG)
def test_wrong_values_are_refused_before_they_are_queued(build, value, message):
    run = build(PAIR)
    with pytest.raises(InvalidArgumentError, match=message):
        run.infeed(value)
    run.infeed(([1, 2], 7))
    assert run() == 7


def test_wrong_values_of_a_shared_queue_are_refused_by_the_program(build):
    run = build(PAIR)
    run.feeds.infeed((np.zeros(3, np.float32), np.int32(0)))
    with pytest.raises(InvalidArgumentError, match=r"infeed\[0\]: got float32\[3\], want float32\[2\]"):
        run()


def test_one_of_several_types_is_found(build):
    text = """ENTRY e { t = token[] after-all() a = (f32[2], token[]) infeed(t)
      t1 = token[] get-tuple-element(a), index=1 b = (s32[], token[]) infeed(t1)
      x = f32[2] get-tuple-element(a), index=0 n = s32[] get-tuple-element(b), index=0
      ROOT r = (f32[2], s32[]) tuple(x, n) }"""
    run = build(text)
    run.infeed([1, 2])
    run.infeed(3)
    np.testing.assert_array_equal(run()[0], [1, 2])
    with pytest.raises(InvalidArgumentError, match="no infeed of the program takes"):
        run.infeed([1, 2, 3])


def test_programs_without_transfers_say_so(build):
    run = build("ENTRY e { ROOT x = f32[] constant(1) }")
    with pytest.raises(InvalidArgumentError, match="no infeed"):
        run.infeed(1)
    with pytest.raises(InvalidArgumentError, match="no outfeed"):
        run.outfeed()


def test_values_are_copied(build):
    x = np.float32([1, 2])
    run = build(PAIR)
    run.infeed((x, 0))
    x[:] = 9
    run()
    np.testing.assert_array_equal(run.outfeed(), [2, 4])


def test_bound_programs_have_the_same_queues(build):
    text = PAIR.replace("  t = token[] after-all()", "  y = f32[2] parameter(0)\n  t = token[] after-all()")
    run = build(text.replace("add(x, x)", "add(x, y)"))
    bound = run.bind({0: np.float32([10, 20])})
    bound.infeed(([1, 2], 3))
    assert bound() == 3
    np.testing.assert_array_equal(run.outfeed(), [11, 22])


def test_a_pickle_has_queues_of_its_own(build):
    run = build(PAIR, feeds=Feeds(timeout=7, capacity=3))
    run.infeed(([1, 2], 3))
    other = pickle.loads(pickle.dumps(run))
    assert (other.feeds.timeout, other.feeds.capacity) == (7, 3)
    other.infeed(([5, 6], 4))
    assert (other(), run()) == (4, 3)


def test_queues_can_be_cleared(build):
    run = build(PAIR)
    run.infeed(([1, 2], 3))
    assert repr(run.feeds) == "<Feeds infeed queue: 1>"
    run.feeds.clear()
    assert repr(run.feeds) == "<Feeds empty>"


def test_a_client_has_one_pair_of_queues(backend):
    client = cyxla.LocalClient(backend)
    run, other = client.compile(PAIR), client.compile(PAIR)
    client.transfer_to_infeed((np.float32([1, 2]), np.int32(3)))
    client.transfer_to_infeed((np.float32([3, 4]), np.int32(5)))
    assert (run.run([]), other.run([])) == (3, 5)
    np.testing.assert_array_equal(client.transfer_from_outfeed(Shape.array("f32", (2,))), [2, 4])
    with pytest.raises(InvalidArgumentError, match=r"outfeed: got float32\[2\], want float32\[3\]"):
        client.transfer_from_outfeed(Shape.array("f32", (3,)))


DYNAMIC = """ENTRY e { t = token[] after-all() in = (f32[<=4], token[]) infeed(t)
  x = f32[<=4] get-tuple-element(in), index=0 k = token[] get-tuple-element(in), index=1
  y = f32[<=4] add(x, x) ROOT o = token[] outfeed(y, k), outfeed_shape=f32[<=4] }"""


def test_dynamic_sizes_on_the_interpreter():
    run = cyxla.compile(DYNAMIC, platform="interpreter")
    for values in ([], [1], [1, 2, 3, 4]):
        run.infeed(values)
        run()
        np.testing.assert_array_equal(run.outfeed(), 2 * np.float32(values))
    with pytest.raises(InvalidArgumentError, match=r"infeed: got .*want f32\[<=4\]"):
        run.infeed([1, 2, 3, 4, 5])


def test_dynamic_sizes_are_refused_by_native_code():
    with pytest.raises(UnimplementedError, match="infeed with dynamic dimensions"):
        cyxla.compile(DYNAMIC)


# --- send and recv ---


def sender(channel, host="", value="x"):
    return f"""ENTRY e {{ x = f32[3] parameter(0) t = token[] after-all() y = f32[3] negate(x)
      s = (f32[3], u32[], token[]) send(y, t), channel_id={channel}{host}
      ROOT d = token[] send-done(s), channel_id={channel}{host} }}"""


def receiver(channel, host=""):
    return f"""ENTRY e {{ t = token[] after-all()
      r = (f32[3], u32[], token[]) recv(t), channel_id={channel}{host}
      d = (f32[3], token[]) recv-done(r), channel_id={channel}{host}
      x = f32[3] get-tuple-element(d), index=0 ROOT y = f32[3] add(x, x) }}"""


HOST, X = ", is_host_transfer=true", np.float32([1, 2, 3])


def test_handlers_of_host_transfers(build):
    seen, shapes = [], []
    send, recv = build(sender(5, HOST)), build(receiver(6, HOST))
    send.feeds.on_send(5, seen.append)

    def supply(shape):
        shapes.append(str(shape.to_text(layout=False)))
        return [1, 2, len(shapes)]

    recv.feeds.on_recv(6, supply)
    send(X), send(2 * X)
    np.testing.assert_array_equal(seen, [-X, -2 * X])
    np.testing.assert_array_equal(recv(), [2, 4, 2])
    np.testing.assert_array_equal(recv(), [2, 4, 4])
    assert shapes == ["f32[3]"] * 2


def test_queues_of_host_transfers(build):
    send, recv = build(sender(5, HOST)), build(receiver(5, HOST))
    send(X)
    np.testing.assert_array_equal(send.feeds.recv(5), -X)
    recv.feeds.send(5, X)
    np.testing.assert_array_equal(recv(), 2 * X)


def test_directions_of_a_channel_are_apart(build):
    """A value that a program sends to the host is not what it receives from the host."""
    feeds = Feeds(timeout=0.01)
    build(sender(5, HOST), feeds=feeds)(X)
    with pytest.raises(DeadlineExceededError, match="channel 5 from the host"):
        build(receiver(5, HOST), feeds=feeds)()


def test_programs_of_two_platforms_send_to_each_other(backend):
    feeds = Feeds(timeout=20)
    send = cyxla.compile(sender(3), platform=backend, feeds=feeds)
    recv = cyxla.compile(receiver(3), platform="cpu" if backend == "interpreter" else "interpreter", feeds=feeds)
    found = []
    thread = threading.Thread(target=lambda: found.extend([recv(), recv()]))
    thread.start()
    send(X), send(2 * X)
    thread.join()
    np.testing.assert_array_equal(found, [-2 * X, -4 * X])


def test_programs_that_wait_for_each_other(build):
    """Each sends, then receives what the other has sent; both run at the same time."""
    text = """ENTRY e {{ x = f32[] parameter(0) t = token[] after-all()
      r = (f32[], u32[], token[]) recv(t), channel_id={take} rt = token[] get-tuple-element(r), index=2
      s = (f32[], u32[], token[]) send(x, rt), channel_id={give} st = token[] send-done(s), channel_id={give}
      d = (f32[], token[]) recv-done(r), channel_id={take}, control-predecessors={{st}}
      y = f32[] get-tuple-element(d), index=0 ROOT z = f32[] subtract(y, x) }}"""
    feeds = Feeds(timeout=20)
    one, two = (build(text.format(give=a, take=b), feeds=feeds) for a, b in ((1, 2), (2, 1)))
    found = {}
    thread = threading.Thread(target=lambda: found.update(one=one(np.float32(10))))
    thread.start()
    assert two(np.float32(3)) == 7
    thread.join()
    assert found == {"one": -7}


def test_exceptions_of_handlers_reach_the_caller(build):
    def fail(*_):
        raise KeyError("no")

    send, recv = build(sender(5, HOST)), build(receiver(5, HOST))
    send.feeds.on_send(5, fail)
    recv.feeds.on_recv(5, fail)
    for call in (lambda: send(X), recv):
        with pytest.raises(KeyError, match="no"):
            call()


def test_values_of_handlers_must_fit(build):
    recv = build(receiver(5, HOST))
    recv.feeds.on_recv(5, lambda shape: np.zeros(2, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"channel 5: got float32\[2\], want float32\[3\]"):
        recv()


def test_a_channel_that_nobody_sends_on(build):
    with pytest.raises(DeadlineExceededError, match="channel 9: no program sent a value") as caught:
        build(receiver(9), feeds=Feeds(timeout=0.01))()
    assert "same feeds" in caught.value.hint


# --- Feeds ---


@pytest.mark.parametrize("make, message", [
    (lambda: Feeds(timeout=-1), "timeout is -1"), (lambda: Feeds(timeout=math.nan), "timeout is nan"),
    (lambda: Feeds(capacity=0), "capacity is 0"), (lambda: Feeds().on_send(1, 2), "no function"),
    (lambda: Feeds().infeed(object()), "want an array"), (lambda: Feeds().infeed([[1], [2, 3]]), "infeed: got"),
    (lambda: Feeds().infeed((1, np.ma.masked_array([1]))), r"infeed\[1\] is a MaskedArray"),
    (lambda: cyxla.compile(PAIR, feeds=[]), "feeds is a list"),
])  # fmt: skip
def test_bad_input(make, message):
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_a_channel_has_one_handler():
    feeds = Feeds()
    feeds.on_send(1, print)
    feeds.on_recv(1, print)
    with pytest.raises(AlreadyExistsError, match="channel 1"):
        feeds.on_send(1, print)


def test_platforms_without_transfers_say_so():
    class Deaf(Executable):
        platform, inputs, outputs = "deaf", (), Shape.array("f32", ())

        def __call__(self, *args, out=None):
            return np.float32(0)

        def hlo(self, stage="optimized"):
            return PAIR

        def explain(self):
            return ""

    with pytest.raises(UnimplementedError, match="platform deaf transfer nothing"):
        Deaf().infeed(([1, 2], 3))


def test_the_kernels_are_named():
    assert "host transfer" in cyxla.compile(PAIR).explain()


def test_the_page_runs():
    text = (Path(__file__).parents[2] / "docs" / "host-transfers.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "host-transfers.md", "exec"), {})


# --- StableHLO ---

STABLE = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %in:3 = "stablehlo.infeed"(%t) <{infeed_config = ""}> :
    (!stablehlo.token) -> (tensor<3xf32>, tensor<i32>, !stablehlo.token)
  %y = stablehlo.add %x, %in#0 : tensor<3xf32>
  %t1 = "stablehlo.outfeed"(%y, %in#1, %in#2) <{outfeed_config = ""}> :
    (tensor<3xf32>, tensor<i32>, !stablehlo.token) -> !stablehlo.token
  %t2 = "stablehlo.send"(%y, %t1)
    <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> :
    (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  %r:2 = "stablehlo.recv"(%t2)
    <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 3>, is_host_transfer = true}> :
    (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  return %r#0 : tensor<3xf32>
}"""


@pytest.mark.parametrize("written", [False, True], ids=["read", "written again"])
def test_stablehlo(build, written):
    module = read_stablehlo(STABLE)
    run = build(write_stablehlo(module) if written else STABLE)
    run.infeed(([10, 20, 30], 4))
    run.feeds.send(6, np.float32([7, 8, 9]))
    np.testing.assert_array_equal(run(X), [7, 8, 9])
    array, number = run.outfeed()
    np.testing.assert_array_equal(array, [11, 22, 33])
    assert number == 4
    np.testing.assert_array_equal(run.feeds.recv(5), array)


HALVES = [
    ("x = f32[] constant(1) t = token[] after-all() ROOT s = (f32[], u32[], token[]) send(x, t), channel_id=1",
     "send without its send-done"),
    ("r = (f32[], u32[], token[]) parameter(0) ROOT d = (f32[], token[]) recv-done(r), channel_id=1",
     "recv-done of a parameter"),
]  # fmt: skip


@pytest.mark.parametrize("lines, message", HALVES)
def test_halves_of_transfers_have_no_form_in_stablehlo(lines, message):
    with pytest.raises(UnimplementedError, match=message):
        write_stablehlo(parse_module(f"ENTRY e {{ {lines} }}"))
