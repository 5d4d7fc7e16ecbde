"""infeed and outfeed are queues; send and recv have nobody to talk to."""

import numpy as np
import pytest

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.evaluator import Options

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
    options = Options(infeed=[PAIR, PAIR])
    assert hlo(FEEDS, options=options) == 7
    assert len(options.infeed) == 1
    np.testing.assert_array_equal(options.outfeed, [[1, 2]])


def test_an_empty_queue_is_named(hlo):
    with pytest.raises(UnimplementedError, match="infeed queue is empty"):
        hlo(FEEDS)


def test_transferred_values_must_fit(hlo):
    with pytest.raises(InvalidArgumentError, match=r"expected f32\[2\]"):
        hlo(FEEDS, options=Options(infeed=[(np.zeros(3, np.float32), np.int32(0))]))


def test_send_names_its_channel(hlo):
    text = """
    ENTRY main {
      t = token[] after-all()
      x = f32[] constant(1)
      s = (f32[], u32[], token[]) send(x, t), channel_id=4
      ROOT d = token[] send-done(s), channel_id=4
    }
    """
    with pytest.raises(UnimplementedError, match="channel 4"):
        hlo(text)
