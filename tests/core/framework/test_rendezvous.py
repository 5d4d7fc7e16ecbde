"""Where values meet."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework import CancellationManager, Rendezvous
from cyxla.core.framework.step.rendezvous import create_key, parse_key
from cyxla.errors import AbortedError, CancelledError, DeadlineExceededError, InvalidArgumentError, OpError

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
KEY = create_key(CPU, 1, CPU, "edge_5_x")


def test_keys():
    key = create_key(CPU, 255, CPU, "e", (3, 4))
    assert key == f"{CPU};00000000000000ff;{CPU};e;3:4"
    parsed = parse_key(key)
    assert (parsed.src_incarnation, parsed.edge_name, parsed.frame_iter) == (255, "e", (3, 4))


@pytest.mark.parametrize(
    "key", ["", "a;b;c", f"{CPU};xyz;{CPU};e;0:0", f"{CPU};1;nowhere;e;0:0", f"{CPU};1;{CPU};e;00"]
)
def test_bad_keys(key):
    with pytest.raises(InvalidArgumentError, match="is not a valid rendezvous key"):
        parse_key(key)


def test_a_value_is_kept_until_asked_for():
    """Send does not block."""
    meet = Rendezvous()
    meet.send(KEY, 1)
    meet.send(KEY, 2, True)
    assert meet.recv(KEY) == (1, False)
    assert meet.recv(KEY) == (2, True)
    assert meet.is_idle


def test_asking_may_come_first():
    meet, got = Rendezvous(), []
    for k in range(3):
        meet.recv_async(KEY, lambda error, value, dead, k=k: got.append((k, error, value, dead)))
    meet.send("other", 7)
    for k in range(3):
        meet.send(KEY, k * 10)
    assert got == [(k, None, k * 10, False) for k in range(3)]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab")), max_size=40))
def test_first_in_first_out_by_key(steps):
    """Whatever order senders and receivers come in."""
    meet, sent, got = Rendezvous(), {"a": [], "b": []}, {"a": [], "b": []}
    for number, (sends, key) in enumerate(steps):
        if sends:
            sent[key].append(number)
            meet.send(key, number)
        else:
            place = len(got[key])
            got[key].append(None)
            meet.recv_async(key, lambda _e, v, _d, key=key, place=place: got[key].__setitem__(place, v))
    for key in "ab":
        pairs = min(len(sent[key]), len(got[key]))
        assert got[key] == sent[key][:pairs] + [None] * (len(got[key]) - pairs)


def test_abort_wakes_all_that_wait_and_refuses_all_that_come():
    """Code 10 if no other error is given."""
    meet, errors = Rendezvous(), []
    waiting = threading.Thread(target=lambda: errors.append(_error_of(lambda: meet.recv(KEY))))
    waiting.start()
    meet.recv_async(KEY, lambda error, _v, _d: errors.append(error))
    meet.send("kept", 1)
    while len(meet._waiting.get(KEY, ())) < 2:
        time.sleep(0.001)
    meet.start_abort()
    waiting.join()
    assert [type(e) for e in errors] == [AbortedError] * 2
    for use in (lambda: meet.send(KEY, 1), lambda: meet.recv("kept")):
        assert isinstance(_error_of(use), AbortedError)
    meet.start_abort(InvalidArgumentError("later"))  # the first error stays
    assert isinstance(_error_of(lambda: meet.recv(KEY)), AbortedError)


def test_abort_with_an_error():
    meet = Rendezvous()
    meet.start_abort(InvalidArgumentError("why"))
    with pytest.raises(InvalidArgumentError, match="why"):
        meet.send(KEY, 1)


def _error_of(use):
    try:
        use()
    except OpError as error:
        return error
    return None


def test_a_wait_may_end():
    meet = Rendezvous()
    with pytest.raises(DeadlineExceededError):
        meet.recv(KEY, timeout=0.01)
    assert meet.is_idle
    meet.send(KEY, 1)
    assert meet.recv(KEY, timeout=600) == (1, False)


def test_a_wait_may_be_cancelled():
    """With code 1, and nothing stays behind."""
    meet, manager, errors = Rendezvous(), CancellationManager(), []
    thread = threading.Thread(target=lambda: errors.append(_error_of(lambda: meet.recv(KEY, None, manager))))
    thread.start()
    while meet.is_idle:
        time.sleep(0.001)
    manager.start_cancel()
    thread.join()
    assert isinstance(errors[0], CancelledError)
    assert meet.is_idle
    with pytest.raises(CancelledError):
        meet.recv(KEY, None, manager)


def test_a_received_value_leaves_no_callback():
    meet, manager = Rendezvous(), CancellationManager()
    for _ in range(3):
        meet.recv_async(KEY, lambda *_: None, manager)
        meet.send(KEY, 1)
    assert not manager._callbacks
