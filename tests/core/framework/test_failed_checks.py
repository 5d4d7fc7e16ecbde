"""Failed checks of kernels: where they are located, and how they are logged."""

import logging

import pytest
from support.graphs.probes import Registries, context

from cyxla.core.framework import OpKernel, kernel, op_requires, op_requires_ok
from cyxla.core.framework.op_kernel import op_requires_async, op_requires_ok_async, run_kernel
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError

BAD = "the check failed"


@pytest.fixture
def world():
    made = Registries()
    made.op("Probe", "-> y: float")
    return made


def require(construction):
    construction.require(False, BAD)


def set_status(construction):
    construction.set_status(InvalidArgumentError(BAD))


def failure(construction):
    construction.ctx_failure(InvalidArgumentError(BAD))


def failure_with_warning(construction):
    construction.ctx_failure_with_warning(InvalidArgumentError(BAD))


def read_attr(construction):
    construction.get_attr("missing")


@pytest.mark.parametrize("check, message", [
    (require, BAD), (set_status, BAD), (failure, BAD), (failure_with_warning, BAD),
    (read_attr, "No attr named 'missing' in NodeDef"),
])  # fmt: skip
def test_a_failed_check_of_a_constructor_names_its_line(world, check, message):
    @kernel("Probe", registry=world.kernels)
    class Fails(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            check(construction)

    with pytest.raises(OpError) as caught:
        world.make("Probe")
    line = check.__code__.co_firstlineno + 1
    place = "op_kernel.py" if check is read_attr else f"test_failed_checks.py:{line}"
    assert caught.value.message == message
    assert caught.value.where.startswith("node 'probe' (Probe), ")
    assert place in caught.value.where or check is read_attr


@pytest.mark.parametrize("fail, level", [
    (lambda ctx, error: ctx.ctx_failure(error),                     "DEBUG"),
    (lambda ctx, error: ctx.ctx_failure_with_warning(error),        "WARNING"),
    (lambda ctx, error: op_requires(False, error),                  "DEBUG"),
    (lambda ctx, error: op_requires_ok(error),                      "WARNING"),
])  # fmt: skip
def test_checks_are_logged_by_their_form(world, caplog, fail, level):
    @kernel("Probe", registry=world.kernels)
    def fails(ctx):
        fail(ctx, NotFoundError(BAD))

    made = world.make("Probe")
    with caplog.at_level(logging.DEBUG, "cyxla.op_kernel"), pytest.raises(NotFoundError) as caught:
        run_kernel(made, context(made))
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith("OP_REQUIRES failed at test_failed_checks.py:")
    assert record.getMessage().endswith(f" : NOT_FOUND: {BAD}")
    assert "test_failed_checks.py:" in caught.value.where


@pytest.mark.parametrize("check, level", [
    (lambda ctx, error, done: op_requires_async(ctx, False, error, done), "DEBUG"),
    (lambda ctx, error, done: op_requires_ok_async(ctx, error, done),     "WARNING"),
])  # fmt: skip
def test_checks_of_asynchronous_kernels_end_them(world, caplog, check, level):
    kernel("Probe", registry=world.kernels)(OpKernel)
    made, calls = world.make("Probe"), []
    ctx = context(made)
    with caplog.at_level(logging.DEBUG, "cyxla.op_kernel"):
        assert not check(ctx, NotFoundError(BAD), lambda: calls.append(1))
    assert (calls, ctx.status.message) == ([1], BAD)
    assert [r.levelname for r in caplog.records] == [level]


def test_passed_checks_do_nothing(world, caplog):
    kernel("Probe", registry=world.kernels)(OpKernel)
    ctx = context(world.make("Probe"))
    op_requires(True, NotFoundError(BAD))
    op_requires_ok(None)
    assert op_requires_ok_async(ctx, None, lambda: None)
    assert not caplog.records
