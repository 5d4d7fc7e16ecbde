"""Libraries that load beside other threads: all of a library or nothing, and nothing of anybody else."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from support.graphs.probes import Registries

from cyxla.core.framework import KernelRegistry, NodeDef, OpRegistry, array_kernel, op
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op_def import ArgDef, AttrDef, OpDef
from cyxla.core.framework.declarations.op_def_builder import OpDefBuilder, OpRegistrationData
from cyxla.core.framework.gradient import GradientRegistry
from cyxla.core.framework.load_library import load_op_library
from cyxla.core.framework.types import DataType
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, OpError
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

LIMIT = 30  # seconds that a thread may wait for another before the test fails

FIRST_HALF = """
import numpy as np
from cyxla.core.framework import array_kernel, gradient, op
from cyxla.core.framework.apply import apply_op
op("StagedA", "x: T -> y: T", "T: {float, int32}", shape=None)
array_kernel("StagedA", lambda x: x + 1)
gradient("StagedA")(lambda op, dy: dy)
from cyxla.tf2xla.xla_op_registry import register_xla_op
register_xla_op("StagedA", object)
"""
MEET = """
import meeting
meeting.inside.set()
assert meeting.go.wait(30)
"""
BAD = 'op("bad name", "->", shape=None)\n'
GOOD = 'op("StagedB", "->", shape=None)\n'


def remains():
    """Return the registrations of the library, in all registries."""
    found = [name for name in ("StagedA", "StagedB") if name in OpRegistry.global_()]
    found += [k.op for k in KernelRegistry.global_().get_registered_kernels_for_op("StagedA")]
    found += [name for name in ("StagedA",) if GradientRegistry.global_().find(name)]
    return found + [r.name for r in XlaOpRegistry.global_().registrations("StagedA")]


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Writes a library, and loads it in another thread, which stops at `MEET`."""
    meeting = SimpleNamespace(inside=threading.Event(), go=threading.Event(), error=None)
    monkeypatch.setitem(sys.modules, "meeting", meeting)
    threads = []

    def start(text):
        path = tmp_path / f"library{len(threads)}.py"
        path.write_text(text)

        def work():
            try:
                load_op_library(path)
            except OpError as error:
                meeting.error = error
            finally:
                meeting.inside.set()

        thread = threading.Thread(target=work)
        threads.append(thread)
        thread.start()
        assert meeting.inside.wait(LIMIT)
        return meeting

    def end():
        meeting.go.set()
        threads[-1].join(LIMIT)
        assert not threads[-1].is_alive()
        return meeting.error

    yield SimpleNamespace(start=start, end=end)
    end()
    assert_gone()


def assert_gone():
    """Remove the registrations of a test."""
    ops = OpRegistry.global_()
    for name in ("StagedA", "StagedB", "StagedOther"):
        ops._ops.pop(name, None)
        GradientRegistry.global_()._gradients.pop(name, None)
        XlaOpRegistry.global_()._ops.pop(name, None)
    KernelRegistry.global_().keep_only(lambda kernel_def: not kernel_def.op.startswith("Staged"))


def register_other():
    op("StagedOther", "x: T -> y: T", "T: {float, int32}", shape=None)
    array_kernel("StagedOther", lambda x: x * 2)


def miss():
    with pytest.raises(NotFoundError):
        OpRegistry.global_().look_up("StagedA")


MEANWHILE = {
    "look_up": lambda: OpRegistry.global_().look_up("Relu"),
    "list": lambda: OpRegistry.global_().get_registered_ops(),
    "miss": miss,
    "kernels": lambda: KernelRegistry.global_().get_all_registered_kernels(),
    "compiled": lambda: XlaOpRegistry.global_().register_compilation_kernels(),
    "register": register_other,
}


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_a_failed_load_leaves_nothing_beside_other_threads(library, meanwhile):
    library.start(FIRST_HALF + MEET + BAD)
    meanwhile()
    assert remains() == []  # nobody else sees half a library
    assert isinstance(library.end(), InvalidArgumentError)
    assert remains() == []


def test_concurrent_registrations_stay(library):
    library.start(FIRST_HALF + MEET + BAD)
    register_other()
    assert isinstance(library.end(), InvalidArgumentError)
    np.testing.assert_array_equal(apply_op("StagedOther", np.float32([1, 2])), [2, 4])


def test_a_load_enters_as_a_whole(library):
    library.start(FIRST_HALF + MEET + GOOD)
    register_other()
    assert remains() == []
    assert library.end() is None
    assert remains() == ["StagedA", "StagedB", "StagedA", "StagedA", "StagedA"]
    np.testing.assert_array_equal(apply_op("StagedA", np.float32([1, 2])), [2, 3])
    assert "StagedOther" in OpRegistry.global_()


def test_a_library_uses_its_own_ops_while_it_loads(library):
    use = 'assert apply_op("StagedA", np.float32([1])).tolist() == [2]\n'
    library.start(FIRST_HALF + use + BAD)
    assert isinstance(library.end(), InvalidArgumentError)
    assert remains() == []


def test_a_mended_library_loads(library):
    library.start(FIRST_HALF + BAD)
    assert isinstance(library.end(), InvalidArgumentError)
    library.start("import meeting; meeting.error = None\n" + FIRST_HALF + GOOD)
    assert library.end() is None
    assert remains() == ["StagedA", "StagedB", "StagedA", "StagedA", "StagedA"]


def test_of_two_of_one_name_the_first_stays(library):
    library.start(FIRST_HALF + 'op("StagedOther", "->", shape=None)\n' + MEET)
    register_other()
    assert isinstance(library.end(), AlreadyExistsError)
    assert remains() == []
    np.testing.assert_array_equal(apply_op("StagedOther", np.int32([3])), [6])


def test_libraries_load_beside_a_watcher(library):
    heard = []
    OpRegistry.global_().set_watcher(lambda error, op_def: heard.append(op_def.name) or error)
    try:
        library.start(FIRST_HALF + GOOD)
        assert library.end() is None
        op("StagedOther", "->", shape=None)
    finally:
        OpRegistry.global_().set_watcher(None)
    assert heard == ["StagedA", "StagedB", "StagedOther"]


# The first look-up of what packages bring


def by_op(world):
    return world.ops.look_up("Late")


def by_kernel(world):
    return world.kernels.find("CPU", NodeDef("n", "Late", [], "", {}))


@pytest.mark.parametrize("ask", [by_op, by_kernel])
def test_threads_that_miss_something_wait_for_the_packages(ask):
    world, inside, others = Registries(), threading.Event(), threading.Event()
    results, calls = [], []

    def packages():
        calls.append(1)
        if len(calls) > 1:  # the other registry asks, too
            return
        inside.set()
        others.wait(0.1)  # until the others have failed, if they do; in vain where they wait
        for question in (by_op, by_kernel):
            with pytest.raises(NotFoundError):
                question(world)  # the thread that loads does not wait for itself
        world.op("Late", "->")
        from cyxla.core.framework import kernel

        kernel("Late", registry=world.kernels)(lambda ctx: None)

    world.ops, world.kernels = OpRegistry(on_miss=packages), KernelRegistry(on_miss=packages)

    def work():
        try:
            ask(world)
            results.append("found")
        except Exception as error:
            results.append(type(error).__name__)
            others.set()

    threads = [threading.Thread(target=work) for _ in range(6)]
    threads[0].start()
    assert inside.wait(LIMIT)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert results == ["found"] * 6


def test_two_registries_ask_the_packages_at_once():
    """Each thread waits for its own registry, and the load of one queries the other."""
    world, ready = Registries(), threading.Barrier(2)
    results = []

    def packages():
        for question in (by_op, by_kernel):
            with pytest.raises(NotFoundError):
                question(world)

    world.ops, world.kernels = OpRegistry(on_miss=packages), KernelRegistry(on_miss=packages)

    def work(ask):
        ready.wait(LIMIT)
        with pytest.raises(NotFoundError):
            ask(world)
        results.append(True)

    threads = [threading.Thread(target=work, args=(ask,), daemon=True) for ask in (by_op, by_kernel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert results == [True, True]


def test_an_interrupted_loading_is_done_again():
    answers = iter([KeyboardInterrupt(), None])

    def packages():
        error = next(answers)
        if error is not None:
            raise error
        op("Late", "->", shape=None, registry=registry)

    registry = OpRegistry(on_miss=packages)
    with pytest.raises(KeyboardInterrupt):
        registry.look_up("Late")
    assert registry.look_up_op_def("Late").name == "Late"


# Finished declarations

FLOAT = DataType.DT_FLOAT
FAULTS = {
    "two types": OpDef("Bad", (ArgDef("x", FLOAT, type_attr="T"),), attr=(AttrDef("T", "type"),)),
    "no type": OpDef("Bad", (ArgDef("x"),)),
    "unknown attr": OpDef("Bad", (ArgDef("x", type_attr="T"),)),
    "name": OpDef("not a name"),
    "twice": OpDef("Bad", (ArgDef("x", FLOAT),), (ArgDef("x", FLOAT),)),
    "a number of a list": OpDef(
        "Bad",
        (ArgDef("x", number_attr="N", type_list_attr="T"),),
        attr=(AttrDef("N", "int", minimum=0), AttrDef("T", "list(type)")),
    ),
    "number": OpDef("Bad", (ArgDef("x", FLOAT, number_attr="N"),), attr=(AttrDef("N", "string"),)),
}


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("op_def", FAULTS.values(), ids=FAULTS)
def test_finished_declarations_are_checked(op_def, deferred):
    registry = OpRegistry()
    if deferred:
        registry.register(lambda: OpRegistrationData(op_def))
        assert isinstance(registry.process_registrations(), InvalidArgumentError)
        registry.clear_deferred_registrations()
    else:
        registry.get_registered_ops()
        with pytest.raises(InvalidArgumentError):
            registry.register(lambda: OpRegistrationData(op_def))
    assert registry.get_registered_ops() == []
    registry.register(lambda: OpDefBuilder("Fine").input("x: float").finalize())
    assert "Fine" in registry
