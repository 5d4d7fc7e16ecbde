"""Registries of ops: deferred and immediate modes, queries, watcher, selection."""

import threading

import pytest

from cyxla.core.framework.declarations.op import OpListOpRegistry, OpRegistry, op, register_op
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.declarations.op_def_builder import OpDefBuilder
from cyxla.core.framework.declarations.selective_registration import (
    required_ops,
    select_ops,
    should_register_op,
    should_register_op_kernel,
)
from cyxla.core.framework.protos.messages import parse_text
from cyxla.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError


def good(name="A"):
    return OpDefBuilder(name).input("x: float").output("y: float").finalize


def bad():
    raise InvalidArgumentError("broken")


TRIGGERS = {
    "look_up": lambda r: r.look_up("A"),
    "look_up_op_def": lambda r: r.look_up_op_def("A"),
    "get_registered_ops": lambda r: r.get_registered_ops(),
    "get_op_registration_data": lambda r: r.get_op_registration_data(),
    "export": lambda r: r.export(),
    "debug_string": lambda r: r.debug_string(),
    "process_registrations": lambda r: r.process_registrations(),
}


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
def test_leaving_deferred_mode(trigger):
    registry = OpRegistry()
    registry.register(good())
    assert not registry.initialized
    trigger(registry)
    assert registry.initialized
    assert registry.look_up_op_def("A").name == "A"


def test_fresh_registry_is_empty_and_independent():
    registry = OpRegistry()
    assert registry.get_registered_ops() == []
    assert OpRegistry.global_() is OpRegistry.global_()
    assert "MatMul" in OpRegistry.global_()
    assert "MatMul" not in registry


def test_look_up_gives_declaration_and_shape_function():
    """NOT_FOUND otherwise."""
    data = OpRegistry.global_().look_up("MatMul")
    assert data.op_def.name == "MatMul"
    assert callable(data.shape_inference_fn)
    registry = OpRegistry()
    registry.register(good())
    assert registry.look_up("A").shape_inference_fn is None
    with pytest.raises(NotFoundError, match="'Nonsense'"):
        registry.look_up("Nonsense")


def test_broken_factory_waits_while_deferred():
    """The first query raises."""
    registry = OpRegistry()
    registry.register(bad)
    with pytest.raises(InvalidArgumentError, match="broken"):
        registry.get_registered_ops()


def test_broken_factory_raises_at_once_when_immediate():
    """And leaves the registry as it was."""
    registry = OpRegistry()
    registry.get_registered_ops()
    with pytest.raises(InvalidArgumentError, match="broken"):
        registry.register(bad)
    assert registry.get_registered_ops() == []
    registry.register(good())
    assert len(registry.get_registered_ops()) == 1


def test_duplicates():
    """ALREADY_EXISTS, in either mode."""
    registry = OpRegistry()
    registry.register(good())
    registry.look_up("A")
    with pytest.raises(AlreadyExistsError):
        registry.register(good())
    waiting = OpRegistry()
    waiting.register(good())
    waiting.register(good())
    assert isinstance(waiting.process_registrations(), AlreadyExistsError)


def test_a_group_enters_whole_or_not_at_all():
    """One bad op of three."""
    registry = OpRegistry()
    for factory in (good("A"), bad, good("B")):
        registry.register(factory)
    error = registry.process_registrations()
    assert isinstance(error, InvalidArgumentError)
    assert not registry.initialized
    registry.clear_deferred_registrations()
    assert registry.process_registrations() is None
    assert registry.get_registered_ops() == []


def test_back_to_deferred_mode():
    """Existing registrations stay, further ones wait."""
    registry = OpRegistry()
    registry.register(good("A"))
    registry.look_up("A")
    registry.defer_registrations()
    registry.register(bad)
    assert not registry.initialized
    registry.clear_deferred_registrations()
    registry.register(good("B"))
    assert {d.name for d in registry.get_registered_ops()} == {"A", "B"}


def test_cleared_ops_never_appear():
    registry = OpRegistry()
    registry.register(good())
    registry.clear_deferred_registrations()
    assert registry.get_registered_ops() == []


def test_watcher_sees_and_replaces_outcomes():
    seen = []

    def watch(error, op_def):
        seen.append((type(error).__name__, op_def.name))
        return InvalidArgumentError("not today") if op_def.name == "C" else None

    registry = OpRegistry()
    registry.set_watcher(watch)
    registry.get_registered_ops()
    registry.register(good("A"))
    registry.register(bad)  # the watcher says that it is all right
    with pytest.raises(InvalidArgumentError, match="not today"):
        registry.register(good("C"))
    assert seen == [("NoneType", "A"), ("InvalidArgumentError", ""), ("NoneType", "C")]
    assert [d.name for d in registry.get_registered_ops()] == ["A"]
    with pytest.raises(AlreadyExistsError):
        registry.set_watcher(watch)
    registry.set_watcher(None)
    registry.set_watcher(watch)


def test_validators_see_the_filled_registry_once():
    """The first query runs them; later ones run at once."""
    registry = OpRegistry()
    seen = []
    registry.add_validator(lambda r: seen.append(len(r.get_registered_ops())))
    registry.register(good())
    assert seen == []
    registry.look_up("A")
    registry.look_up("A")
    assert seen == [1]
    registry.add_validator(lambda r: seen.append("late"))
    assert seen == [1, "late"]


def test_threads_look_up_and_register():
    registry = OpRegistry()
    errors = []

    def work(thread):
        try:
            for i in range(50):
                registry.register(good(f"A{thread}_{i}"))
                assert registry.look_up(f"A{thread}_{i}")
        except Exception as e:  # shown by the assertion below
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(registry.get_registered_ops()) == 400


def test_export_is_sorted_and_may_leave_out_internal_ops():
    registry = OpRegistry.global_()
    names = [d.name for d in registry.export()]
    assert names == sorted(names)
    assert "_Arg" not in names
    everything = registry.export(include_internal=True)
    assert "_Arg" in {d.name for d in everything}
    assert len(everything) == len(registry.get_registered_ops())


def test_debug_string_shows_signature_attrs_and_flags():
    registry = OpRegistry()
    op("Big", "xs: N * T -> y: T", "T: {float} = DT_FLOAT", "N: int", "s: string = 'a'", "l: list(int) = [1, 2]",
       "f: float = 0.1", "b: bool = true", stateful=True, commutative=True, shape=None, registry=registry)  # fmt: skip
    op("_Small", "->", shape=None, registry=registry)
    line = registry.debug_string()
    assert line == (
        "Op<name=Big; signature=xs:N*T -> y:T; attr=T:type,default=DT_FLOAT,allowed=[DT_FLOAT]; attr=N:int,min=1; "
        'attr=s:string,default="a"; attr=l:list(int),default=[1, 2]; attr=f:float,default=0.1; '
        "attr=b:bool,default=true; is_commutative=true; is_stateful=true>\n"
    )
    assert "_Small" in registry.debug_string(include_internal=True)


def test_list_of_ops_as_a_registry():
    registry = OpListOpRegistry([OpDef("A")])
    assert registry.look_up("A").shape_inference_fn is None
    assert registry.look_up_op_def("A") == OpDef("A")
    with pytest.raises(NotFoundError):
        registry.look_up("B")


def test_only_selected_ops_enter_but_system_ops_always_do():
    registry = OpRegistry()
    select_ops(["A"], registry)
    register_op(OpDefBuilder("A"), registry=registry)
    register_op(OpDefBuilder("B"), registry=registry)
    register_op(OpDefBuilder("_Arg"), system=True, registry=registry)
    assert {d.name for d in registry.get_registered_ops()} == {"A", "_Arg"}
    assert should_register_op("A", registry)
    assert not should_register_op("B", registry)
    assert [should_register_op_kernel(name, registry) for name in ("A", "B", "_Arg")] == [True, False, True]
    with pytest.raises(FailedPreconditionError):
        select_ops(None, registry)


def test_ops_that_a_graph_needs():
    text = """node { name: "c" op: "f" } node { name: "d" op: "NoOp" }
    library { function { signature { name: "f" } node_def { name: "m" op: "MatMul" } } }"""
    assert required_ops(parse_text("GraphDef", text)) == ["MatMul", "NoOp"]
