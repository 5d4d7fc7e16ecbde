"""Cancellation of waiting kernels."""

import threading
import time

import pytest

from cyxla.core.framework import CancellationManager


def test_callbacks_run_once():
    manager, ran = CancellationManager(), []
    tokens = [manager.get_cancellation_token() for _ in range(3)]
    assert len(set(tokens)) == 3
    for token in tokens:
        assert manager.register_callback(token, lambda token=token: ran.append(token))
    assert manager.deregister_callback(tokens[1])
    assert not manager.is_cancelled
    manager.start_cancel()
    manager.start_cancel()
    assert ran == [tokens[0], tokens[2]]
    assert manager.is_cancelled


def test_after_cancellation_nothing_is_registered():
    """False, and the caller must clean up itself."""
    manager = CancellationManager()
    manager.start_cancel()
    assert not manager.register_callback(manager.get_cancellation_token(), lambda: None)
    assert not manager.deregister_callback(0)
    assert not manager.try_deregister_callback(0)


def test_an_unknown_token():
    manager = CancellationManager()
    assert not manager.deregister_callback(5)
    manager.register_callback(5, lambda: None)
    assert manager.try_deregister_callback(5)
    assert not manager.try_deregister_callback(5)


def test_deregistering_waits_for_a_running_callback():
    manager, begun, go_on, order = CancellationManager(), threading.Event(), threading.Event(), []

    def slow():
        begun.set()
        go_on.wait()
        order.append("callback ended")

    manager.register_callback(1, slow)
    cancelling = threading.Thread(target=manager.start_cancel)
    cancelling.start()
    begun.wait()

    def deregister():
        assert not manager.deregister_callback(1)
        order.append("deregistered")

    waiting = threading.Thread(target=deregister)
    waiting.start()
    time.sleep(0.02)
    assert manager.is_cancelling
    assert not manager.try_deregister_callback(1)
    go_on.set()
    waiting.join()
    cancelling.join()
    assert order == ["callback ended", "deregistered"]


def test_a_callback_may_deregister_itself():
    manager, answers = CancellationManager(), []
    manager.register_callback(1, lambda: answers.append(manager.deregister_callback(1)))
    manager.start_cancel()
    assert answers == [False]


def test_a_failing_callback_does_not_leave_the_manager_half_cancelled():
    manager = CancellationManager()
    manager.register_callback(1, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        manager.start_cancel()
    assert manager.is_cancelled


def test_children():
    parent = CancellationManager()
    child, other = CancellationManager(parent), CancellationManager(parent)
    other.close()
    ran = []
    child.register_callback(1, lambda: ran.append("child"))
    parent.start_cancel()
    assert ran == ["child"]
    assert (child.is_cancelled, other.is_cancelled) == (True, False)
    assert CancellationManager(parent).is_cancelled
