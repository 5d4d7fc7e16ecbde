"""Forks while other threads trace, compile, hold locks or import: the child works, with NumPy as it was."""

import ast
import faulthandler
import os
import signal
import sys
import threading
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.graphs.running import Extension

import cyxla
from cyxla import forking
from cyxla.core.framework import OpRegistry, op
from cyxla.core.framework.apply import apply_op
from cyxla.forking import call_in_child, new_condition, new_lock
from cyxla.xla.service import background

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

SOURCE = Path(cyxla.__file__).parent
MADE_HERE = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}
X = np.arange(6.0)


def in_child(check):
    """Fork, and have the child check something; it is killed where it hangs."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            faulthandler.register(signal.SIGALRM, chain=True)  # the watchdog of pytest's may be the parent's thread
            signal.alarm(60)
            check()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0


class Elsewhere:
    """Runs a function in another thread, which waits in its middle until the ``with`` statement ends."""

    def __init__(self, function):
        self._reached, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=function, args=(self._wait,))

    def _wait(self):
        self._reached.set()
        self._go_on.wait(60)

    def __enter__(self):
        self._thread.start()
        assert self._reached.wait(60)

    def __exit__(self, *_):
        self._go_on.set()
        self._thread.join()


def calls(path):
    tree = ast.parse(path.read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "threading"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in imported & MADE_HERE:
            yield node
        if isinstance(node, ast.Attribute) and node.attr in MADE_HERE and getattr(node.value, "id", "") == "threading":
            yield node


def annotations(path):
    """Yield the positions of nodes in annotations."""
    for node in ast.walk(ast.parse(path.read_text())):
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                yield from ((n.lineno, n.col_offset) for n in ast.walk(getattr(node, field)) if hasattr(n, "lineno"))


def test_all_locks_are_made_where_forks_renew_them():
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if path.name != "forking.py" and "threading" in path.read_text()
        for known in [set(annotations(path))]
        for node in calls(path)
        if (node.lineno, node.col_offset) not in known
    ]
    assert not found, "make locks with cyxla.forking.new_lock"


@pytest.mark.parametrize("make", [new_lock, new_condition])
def test_a_lock_of_another_thread_is_free_in_the_child(make):
    lock = make()

    def hold(wait):
        with lock:
            wait()

    def check():
        assert lock.acquire(blocking=False)

    with Elsewhere(hold):
        assert not lock.acquire(blocking=False)
        in_child(check)


def test_a_lock_of_the_forking_thread_stays_its_own():
    lock = new_lock()

    def check():
        taken = []
        other = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
        assert taken == [False]
        lock.release()  # it is held

    with lock:
        in_child(check)
    assert lock.acquire(blocking=False)


def test_conditions_have_no_waiters_in_the_child():
    condition = new_condition()
    waiting = threading.Event()

    def wait_for_it():
        with condition:
            waiting.set()
            condition.wait(60)

    waiter = threading.Thread(target=wait_for_it)
    waiter.start()
    waiting.wait(60)
    in_child(lambda: condition._waiters and pytest.fail("a thread of the parent waits"))
    with condition:
        condition.notify_all()
    waiter.join()


def test_methods_are_called_in_the_child_while_their_object_lives():
    class Counter:
        def __init__(self):
            self.forks = 0
            call_in_child(self.count)

        def count(self):
            self.forks += 1

    counter, before = Counter(), len(forking._methods)
    in_child(lambda: counter.forks == 1 or pytest.fail("it was not called"))
    assert counter.forks == 0
    counter = None
    assert len(forking._methods) == before - 1


def use_everything():
    """Trace, compile, call, and run an op of the framework."""
    made = cyxla.jit(lambda x: np.asarray(np.add([x, x], 1.0)) * 2 + np.zeros(6))
    np.testing.assert_array_equal(made(X), [(X + 1) * 2] * 2)
    np.testing.assert_array_equal(cyxla.compile("ENTRY e { x = f64[6] parameter(0) ROOT r = f64[6] negate(x) }")(X), -X)
    np.testing.assert_array_equal(np.asarray(cyxla.raw_ops.AddV2(x=X, y=X)), X + X)


def test_a_child_works_with_locks_held_by_other_threads():
    use_everything()

    def hold(wait):
        with ExitStack() as held:
            for lock in list(forking._locks):
                if lock is not background._busy:  # a fork waits for it
                    held.enter_context(lock)
            wait()

    with Elsewhere(hold):
        in_child(use_everything)


ORIGINALS = {name: getattr(np, name) for name in ("add", "zeros", "asarray", "nditer", "r_")}


def check_numpy_is_itself():
    assert {name: getattr(np, name) for name in ORIGINALS} == ORIGINALS
    assert all(getattr(np, name) is value for name, value in ORIGINALS.items())
    assert type(np) is type(np.linalg) is type(np.random) is ModuleType
    assert TAKEN["zeros"] is ORIGINALS["zeros"]


TAKEN = {"zeros": np.zeros}  # the globals of a module of its own, for `traced_elsewhere`
exec(compile("def traced_elsewhere(x, wait):\n    wait()\n    return zeros(6) + x\n", __file__, "exec"), TAKEN)


def test_a_child_forked_while_another_thread_traces():
    def trace(wait):
        cyxla.jit(lambda x: TAKEN["traced_elsewhere"](x, wait))(X)
        cyxla.jit(TAKEN["traced_elsewhere"], static=("wait",))(X, lambda: None)

    def check():
        check_numpy_is_itself()
        use_everything()
        nested = cyxla.jit(lambda x: cyxla.jit(lambda y: np.asarray([y, y]))(x) + np.zeros(6))
        np.testing.assert_array_equal(nested(X), [X, X])
        check_numpy_is_itself()

    with Elsewhere(trace):
        for _ in range(5):
            in_child(check)
    check_numpy_is_itself()


def test_names_that_a_traced_function_took_from_numpy_are_put_back_in_the_child():
    function = cyxla.jit(TAKEN["traced_elsewhere"], static=("wait",))
    with Elsewhere(lambda wait: function(X, wait)):
        assert TAKEN["zeros"] is not ORIGINALS["zeros"]
        in_child(check_numpy_is_itself)
    assert TAKEN["zeros"] is ORIGINALS["zeros"]


def test_a_child_of_the_tracing_thread_goes_on_with_the_trace():
    child, parent = None, os.getpid()

    def traced(x):
        nonlocal child
        child = os.fork()
        return np.asarray([x, x]) + np.zeros(6)

    def other(wait):
        cyxla.jit(lambda x: (wait(), x)[1])(X)

    code = 1
    with Elsewhere(other):
        try:
            result = cyxla.jit(traced)(X)
            code = 0 if (result == [X, X]).all() and (child == 0) == (os.getpid() != parent) else 1
            if child == 0:
                check_numpy_is_itself()
        finally:
            if os.getpid() != parent:
                os._exit(code)
    assert os.waitpid(child, 0)[1] == code == 0


def test_a_child_forked_while_another_thread_builds_the_same_function():
    function = cyxla.jit(lambda x, wait: (wait(), np.sin(x))[1], static=("wait",))
    free = threading.Event()

    def once(wait=None):
        if not free.is_set():
            free.set()
            wait()

    with Elsewhere(lambda wait: (setattr(once, "__defaults__", (wait,)), function(X, once))):
        in_child(lambda: np.testing.assert_allclose(function(X, once), np.sin(X)))


def test_a_child_has_no_threads_of_a_session():
    ext = Extension()
    ext.op("Heavy", "x: float -> y: float")
    ext.kernel("Heavy", expensive=True)(lambda ctx: ctx.set_output(0, ctx.input(0)))
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        total = apply_op("AddN", [apply_op("Heavy", x) for _ in range(6)])
    session = ext.session(graph, threads=4, optimize=False)
    assert session.run(total, {x: 2.0}) == 12
    in_child(lambda: session.run(total, {x: 3.0}) == 18 or pytest.fail("wrong"))


def test_a_fork_waits_for_imports_of_other_threads(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text("import sys, time\nsys.begun.set()\ntime.sleep(0.2)\nDONE = True\n")
    monkeypatch.setattr(cyxla, "__path__", [*cyxla.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "begun", threading.Event(), raising=False)
    importer = threading.Thread(target=import_module, args=("cyxla.slow_to_import",))
    importer.start()
    sys.begun.wait(60)
    in_child(lambda: import_module("cyxla.slow_to_import").DONE)
    importer.join()
    del sys.modules["cyxla.slow_to_import"]


def test_packages_that_another_thread_was_loading_are_loaded_by_the_child():
    """What it misses is there once it has asked itself."""
    parent = os.getpid()

    def packages():
        if os.getpid() == parent:
            wait[0]()
        op("Late", "->", shape=None, registry=registry)

    registry, wait = OpRegistry(on_miss=packages), []

    def look_up(waiting):
        wait.append(waiting)
        registry.look_up("Late")

    with Elsewhere(look_up):
        in_child(lambda: registry.look_up("Late"))
    assert "Late" in registry
