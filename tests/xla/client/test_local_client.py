"""XLA's chain: builder, computation, client, executable, arrays."""

import threading

import numpy as np
import pytest

from cyxla import LocalClient, LocalExecutable, Shape, XlaBuilder
from cyxla.errors import InvalidArgumentError, OpError, ShapeError
from cyxla.xla.hlo.builder import functions as f

VECTOR = Shape.array("f32", (16,))
X = np.linspace(-2, 2, 16, dtype=np.float32)
Y = np.linspace(5, 1, 16, dtype=np.float32)


@pytest.fixture
def client(backend):
    return LocalClient(backend)


def saxpy():
    b = XlaBuilder("saxpy")
    x, y = (f.parameter(b, k, VECTOR, name) for k, name in enumerate("xy"))
    return b.build(x * 2.0 + y)


@pytest.fixture
def executable(client):
    return client.compile(saxpy())


def test_a_computation_runs(client, executable):
    assert isinstance(executable, LocalExecutable)
    assert client.platform == executable.executable.platform
    np.testing.assert_array_equal(executable.run([X, Y]), X * 2 + Y)
    out = np.empty(16, np.float32)
    assert executable.run([X, Y], out=out) is out
    np.testing.assert_array_equal(out, X * 2 + Y)


def test_computations_call_computations(client):
    inner = XlaBuilder("square")
    v = f.parameter(inner, 0, Shape.array("f32"), "v")
    square = inner.build(v * v)
    b = XlaBuilder("outer")
    x = f.parameter(b, 0, VECTOR, "x")
    result = f.tuple_(b, [f.map_([x], square, dimensions=[0]), f.exponential(x)])
    squared, exps = client.compile(b.build(result)).run([X])
    np.testing.assert_array_equal(squared, X * X)
    np.testing.assert_allclose(exps, np.exp(X), rtol=1e-6)


@pytest.mark.parametrize("arguments, match", [
    ([X],                           "takes 2 arguments, got 1"),
    ([X, Y, Y],                     "takes 2 arguments, got 3"),
    ([X, Y[:8]],                    "argument 1"),
    ([X.reshape(4, 4), Y],          "argument 0"),
    ([X.astype(np.float64), Y],     "argument 0"),
    ([X, Y.astype(np.int32)],       "argument 1"),
    ([X, "text"],                   "argument 1"),
    ([X, None],                     "argument 1"),
    ([(X, X), Y],                   "argument 0"),
    ([X, object()],                 "argument 1"),
])  # fmt: skip
def test_wrong_arguments(executable, arguments, match):
    with pytest.raises(OpError, match=match) as caught:
        executable.run(arguments)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("out", [
    np.empty(8, np.float32), np.empty(16, np.float64), [0.0] * 16, (np.empty(16, np.float32),),
    np.broadcast_to(np.float32(0), 16),
])  # fmt: skip
def test_wrong_places_for_results(executable, out):
    with pytest.raises(InvalidArgumentError, match="out"):
        executable.run([X, Y], out=out)


@pytest.mark.parametrize("layouts, match", [
    ([VECTOR], "takes 2 arguments, got 1"), ([VECTOR, Shape.array("f32", (8,))], "argument layout 1"),
    ([Shape.array("f64", (16,)), VECTOR], "argument layout 0"),
])  # fmt: skip
def test_wrong_argument_layouts(client, layouts, match):
    assert client.compile(saxpy(), [VECTOR, VECTOR]).run([X, Y]).shape == (16,)
    with pytest.raises(ShapeError, match=match) as caught:
        client.compile(saxpy(), layouts)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_options_reach_the_service(client):
    assert client.compile(saxpy(), cache=False).run([X, Y]).shape == (16,)
    with pytest.raises(InvalidArgumentError, match="unknown option 'cach'"):
        client.compile(saxpy(), cach=False)


def test_threads_share_a_client(client):
    """Each compiles the one program and runs it on data of its own."""
    wrong, start = [], threading.Barrier(4)

    def work(k):
        start.wait()
        for _ in range(5):
            got = client.compile(saxpy()).run([X * k, Y])
            if not np.array_equal(got, X * k * 2 + Y):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
