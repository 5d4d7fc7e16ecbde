"""infeed and outfeed are queues, send and recv are channels; an evaluation without feeds has neither."""

import numpy as np
import pytest

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.evaluator import Options
from cyxla.xla.feeds import Feeds

FEEDS = """
ENTRY main {
  t = token[] after-all()
  in = ((f32[2], s32[]), token[]) infeed(t)
  data = (f32[2], s32[]) get-tuple-element(in), index=0
  after = token[] get-tuple-element(in), index=1
  x = f32[2] get-tuple-element(data), index=0
  out = token[] outfeed(x, after), outfeed_shape=f32[2]
  ROOT n = s32[] get-tuple-element(data), index=1
}
"""
PAIR = (np.float32([1, 2]), np.int32(7))


def test_values_come_in_and_go_out(hlo):
    feeds = Feeds()
    feeds.infeed(PAIR)
    assert hlo(FEEDS, options=Options(feeds=feeds)) == 7
    np.testing.assert_array_equal(feeds.outfeed(), [1, 2])


def test_transferred_values_must_fit(hlo):
    feeds = Feeds()
    feeds.infeed((np.zeros(3, np.float32), np.int32(0)))
    with pytest.raises(InvalidArgumentError, match=r"infeed\[0\]: got float32\[3\], want float32\[2\]"):
        hlo(FEEDS, options=Options(feeds=feeds))


CHANNEL = """
ENTRY main {
  t = token[] after-all()
  x = f32[] constant(1)
  s = (f32[], u32[], token[]) send(x, t), channel_id=4
  d = token[] send-done(s), channel_id=4
  r = (f32[], u32[], token[]) recv(d), channel_id=4
  e = (f32[], token[]) recv-done(r), channel_id=4
  ROOT y = f32[] get-tuple-element(e), index=0
}
"""


def test_a_channel_of_one_program(hlo):
    assert hlo(CHANNEL, options=Options(feeds=Feeds())) == 1


@pytest.mark.parametrize("text, opcode", [(FEEDS, "infeed"), (CHANNEL, "send")])
def test_without_feeds_nobody_is_connected(hlo, text, opcode):
    with pytest.raises(UnimplementedError, match=f"{opcode}: no host is connected"):
        hlo(text)
