"""When clusters are compiled, and how often."""

import logging
import os
import signal
from threading import Event, Thread
from time import sleep

import numpy as np
import pytest
from support.graphs.jitting import auto, cache, chain, nodes_that_run, ones

import cyxla
from cyxla.autojit.flags import flags
from cyxla.autojit.runtime import device_compiler, xla_ops
from cyxla.autojit.runtime.device_compiler import (
    ClusterStats,
    CompileMode,
    XlaCompilationCache,
    build_compilation_cache,
    should_compile,
)
from cyxla.autojit.runtime.xla_ops import CLOSURES, Closure, ClosureStore
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.tensor_shape import UNKNOWN
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.errors import InternalError, InvalidArgumentError, UnimplementedError
from cyxla.xla.service import background

F = DataType.DT_FLOAT


def test_second_run_compiles_nothing():
    """The cache is a resource of the session, and counts."""
    graph, x, y = chain(5)
    session = auto(graph)
    for k in range(4):
        session.run(y, {x: np.full(3, k, np.float32)})
    found = cache(session)
    assert (found.compile_count, found.execution_count, len(found)) == (1, 4, 1)
    assert found is build_compilation_cache(session.engine.resource_manager, "interpreter")
    assert "1 compilations" in found.debug_string()
    for _ in range(2):
        session.run(y, {x: ones(4)})
    assert found.compile_count == 2


def test_values_of_constant_arguments_are_part_of_the_signature():
    """Changing one recompiles, changing data does not."""
    graph, x, y = chain(4, shape=[4])
    shape = graph.placeholder("int32", [2], name="shape")
    with graph.as_default():
        z = apply_op("Reshape", y, shape)
    session = auto(graph)
    for _ in range(2):
        for sizes in ([2, 2], [4, 1]):
            found = session.run(z, {x: ones(4), shape: np.array(sizes, np.int32)})
            assert list(found.shape) == sizes
    assert cache(session).compile_count == len(cache(session)) == 2


def test_policy_of_later_signatures():
    """The first run compiles; others are compiled when asked for again."""
    graph, x, y = chain(4)
    session = auto(graph)
    counts = []
    for size in (1, 2, 2, 3, 2, 3):
        session.run(y, {x: ones(size)})
        counts.append(cache(session).compile_count)
    assert counts == [1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize("mode, stats, requests, defer, compiles", [
    (CompileMode.STRICT, ClusterStats(99, 100, is_megamorphic=True), 1, True, True),
    (CompileMode.LAZY, ClusterStats(execution_count=1), 1, False, True),
    (CompileMode.LAZY, ClusterStats(execution_count=2), 1, False, False),
    (CompileMode.LAZY, ClusterStats(execution_count=2), 2, False, True),
    (CompileMode.LAZY, ClusterStats(execution_count=1), 1, True, False),
    (CompileMode.LAZY, ClusterStats(execution_count=9, is_megamorphic=True), 9, False, False),
])  # fmt: skip
def test_policy(mode, stats, requests, defer, compiles):
    assert should_compile(mode, stats, requests, always_defer=defer) == compiles


def test_megamorphic_clusters():
    """More than 10 compilations with fewer than 50 runs each, and it stays so."""
    graph, x, y = chain(4)
    session = auto(graph)
    for size in range(1, 15):
        for _ in range(2):
            np.testing.assert_allclose(session.run(y, {x: ones(size)}), np.sin(np.tanh(-np.exp(ones(size)))), rtol=1e-5)
    stats = cache(session).stats(("cluster_0", ()))
    assert stats.is_megamorphic
    assert stats.compile_count == 11
    for _ in range(1000):
        session.run(y, {x: ones(1)})
    assert stats.is_megamorphic


def test_strict_clusters_have_no_way_out():
    graph, x, y = chain(4)
    with flags("--tf_xla_enable_lazy_compilation=false"):
        found = nodes_that_run(auto(graph), y, {x: ones(2)})
    assert sorted(op for op in found.values() if op not in ("_Arg", "_Retval")) == ["_XlaCompile", "_XlaRun"]


def test_deferred_compilation():
    """Nothing is ever compiled."""
    graph, x, y = chain(4)
    with flags("--tf_xla_always_defer_compilation"):
        session = auto(graph)
        for _ in range(3):
            np.testing.assert_allclose(session.run(y, {x: ones(2)}), cyxla.Session(graph).run(y, {x: ones(2)}))
    assert cache(session).compile_count == 0


def test_compilation_in_the_background():
    """Runs do not wait."""
    graph, x, y = chain(4)
    with flags("--tf_xla_async_compilation"):
        session = auto(graph)
        session.run(y, {x: ones(2)})
        while cache(session).compile_count == 0:
            sleep(0.01)
        np.testing.assert_allclose(session.run(y, {x: ones(2)}), cyxla.Session(graph).run(y, {x: ones(2)}), rtol=1e-6)
    assert cache(session).compile_count == 1


def test_a_forked_child_continues_compilations(monkeypatch):
    """Once, whoever was about it before."""
    monkeypatch.setattr(background, "FORK_TIMEOUT", 0.05)
    found, begun, go_on, parent = XlaCompilationCache("interpreter"), Event(), Event(), os.getpid()

    def build():
        begun.set()
        assert os.getpid() != parent or go_on.wait(60)
        return "program"

    def ask():
        return found.compile_if_needed("f", 1, build, CompileMode.ASYNC)

    assert ask() is None
    assert begun.wait(60)
    child = os.fork()
    if child == 0:
        count = -1
        try:
            signal.alarm(60)
            while ask() is None:
                sleep(0.01)
            background.submit(lambda: None).wait(60)
            count = found.compile_count
        finally:
            os._exit(count - 1)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    while ask() is None:
        sleep(0.01)
    assert found.compile_count == 1


def test_unsupported_clusters_run_their_fallback(monkeypatch, caplog):
    """Once and for all, with one warning."""
    asked = []

    def compile_function(self, library, function, args):
        asked.append(function.name)
        raise UnimplementedError("no such thing")

    monkeypatch.setattr(XlaCompilationCache, "compile_function", compile_function)
    graph, x, y = chain(4)
    session = auto(graph)
    with caplog.at_level(logging.WARNING, "cyxla.autojit"):
        for size in (1, 2, 2, 2):
            assert session.run(y, {x: ones(size)}).shape == (size,)
    assert asked == ["cluster_0"]
    assert len(caplog.records) == 1
    with flags("--tf_xla_enable_lazy_compilation=false"), pytest.raises(UnimplementedError, match="no such thing"):
        auto(graph).run(y, {x: ones(2)})


def test_errors_of_arguments_are_those_of_the_ops():
    """Errors about values are those of the function."""
    graph = Graph()
    a, b = (graph.placeholder("float", name=name) for name in "ab")
    with graph.as_default():
        y = apply_op("MatMul", a, b, name="product")
    _, _, y = chain(4, graph, y)
    session = auto(graph)
    with pytest.raises(InvalidArgumentError) as caught:
        session.run(y, {a: ones(2, 3), b: ones(2, 3)})
    with pytest.raises(InvalidArgumentError) as plain:
        cyxla.Session(graph).run(y, {a: ones(2, 3), b: ones(2, 3)})
    assert caught.value.message == plain.value.message
    assert session.run(y, {a: ones(2, 3), b: ones(3, 1)}).shape == (2, 1)


def test_keys_are_for_one_run():
    store = ClosureStore()
    closures = [Closure(None, [], [], 0) for _ in range(2)]
    keys = [store.produce(closure) for closure in closures]
    assert len(set(keys)) == 2
    assert store.consume(keys[1]) is closures[1]
    with pytest.raises(InternalError, match="once"):
        store.consume(keys[1])


@pytest.mark.parametrize("lazy", [True, False])
def test_the_two_ops_without_composition(lazy):
    """The graph as the passes leave it runs, too, variables and all."""
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=[2], name="v")
        init = apply_op("AssignVariableOp", handle, graph.constant(ones(2)), dtype=F)
        old = apply_op("ReadVariableOp", handle, dtype=F)
        total = apply_op("AddV2", old, apply_op("Neg", apply_op("Exp", x)))
        with graph.control_dependencies([old.node]):
            write = apply_op("AssignVariableOp", handle, total, dtype=F)
        with graph.control_dependencies([write]):
            after = apply_op("ReadVariableOp", handle, dtype=F)
    found = []
    for options in ({"jit": "auto", "platform": "interpreter", "optimize": False}, {}):
        with flags(tf_xla_enable_lazy_compilation=lazy, tf_xla_min_cluster_size=2):
            session = cyxla.Session(graph, **options)
            session.run(init)
            found.append([session.run([total, after], {x: ones(2) * k}) for k in range(3)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    assert len(CLOSURES) == 0


def test_updates_meanwhile_do_not_mix_shapes(monkeypatch):
    """Variables keep the values that were read when the program was chosen."""
    graph = Graph()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=AttrValue("shape", UNKNOWN), name="v")
        value = graph.placeholder("float", name="value")
        assign = apply_op("AssignVariableOp", handle, value, dtype=F)
        _, _, y = chain(4, graph, apply_op("ReadVariableOp", handle, dtype=F))
    session = auto(graph, optimize=False)
    session.run(assign, {value: ones(2)})
    session.run(y)
    chosen, changed = Event(), Event()
    compute = xla_ops.XlaRunOp.compute

    def waiting(self, ctx):
        chosen.set()
        assert changed.wait(600)
        compute(self, ctx)

    monkeypatch.setattr(xla_ops.XlaRunOp, "compute", waiting)
    results = []
    thread = Thread(target=lambda: results.append(session.run(y)))
    thread.start()
    assert chosen.wait(600)
    session.run(assign, {value: ones(3)})
    changed.set()
    thread.join()
    assert results[0].shape == (2,)


def test_many_threads_compile_once():
    graph, x, y = chain(6)
    session = auto(graph)
    results = []
    threads = [Thread(target=lambda: results.append(session.run(y, {x: ones(5)}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert cache(session).compile_count == 1


@pytest.mark.parametrize("flag", ["tf_xla_check_cluster_input_numerics", "tf_xla_check_cluster_output_numerics"])
def test_numbers_at_the_border(flag):
    graph, x, y = chain(4)
    with flags(**{flag: True}), pytest.raises(InvalidArgumentError, match="cluster_0"):
        auto(graph).run(y, {x: np.array([np.nan], np.float32)})


def test_printed_results(capsys):
    graph, x, y = chain(4)
    with flags(tf_xla_print_cluster_outputs=True):
        auto(graph).run(y, {x: ones(1)})
    assert "cluster_0 output 0" in capsys.readouterr().out


def test_signatures_that_come_once_do_not_pile_up():
    found = XlaCompilationCache("interpreter")
    found.compile_if_needed("f", "first", lambda: "program", CompileMode.LAZY)
    for k in range(3 * device_compiler.MAX_UNCOMPILED):
        assert found.compile_if_needed("f", k, lambda: "program", CompileMode.LAZY) is None
    assert len(found) <= device_compiler.MAX_UNCOMPILED + 1
    assert found.compile_if_needed("f", "first", lambda: "other", CompileMode.LAZY) == "program"


def test_a_compiler_that_breaks():
    """Its failure is told, and the function runs."""
    found = XlaCompilationCache("interpreter")
    for _ in range(2):
        with pytest.raises(UnimplementedError, match="KeyError: 'gone'"):
            found.compile_if_needed("f", 1, lambda: {}["gone"], CompileMode.STRICT)
    assert found.compile_count == 1
