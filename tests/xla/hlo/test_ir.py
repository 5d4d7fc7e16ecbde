"""Instructions, computations, modules, visitors: users stay right whatever the primitives do, and orders are orders."""

from collections import Counter
from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, ShapeError, UnimplementedError
from cyxla.types import Shape, row_major
from cyxla.xla.hlo import Computation, HloModule, Visitor, computations_post_order, parse_module

VECTOR, SCALAR = Shape.array("f32", (4,)), Shape.array("f32")


def parameter(computation, number=0, shape=VECTOR):
    return computation.add("parameter", attrs={"parameter_number": number}, shape=shape)


def add(computation, *operands, **more):
    return computation.add("add", operands, shape=VECTOR, **more)


def assert_users_right(computation):
    for ins in computation.instructions:
        want = Counter(u for u in computation.instructions for o in u.operands if o is ins)
        assert ins.users == dict(want)


def assert_order_right(computation):
    """`post_order` is an order if there is one, and a ShapeError if not."""
    before = {i: [*i.operands, *i.control_predecessors] for i in computation.instructions}
    try:
        list(TopologicalSorter(before).static_order())
    except CycleError:
        with pytest.raises(ShapeError, match="depends on itself"):
            computation.post_order()
        return
    order = computation.post_order()
    place = {ins: k for k, ins in enumerate(order)}
    assert len(order) == len(place) == len(computation.instructions)
    assert all(place[p] < place[ins] for ins, needs in before.items() for p in needs)


# A step names instructions by numbers, taken modulo how many there are.
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "operand", "uses", "root"]), *[st.integers(0, 30)] * 3), max_size=25
)


@given(STEPS)
def test_users_stay_right(steps):
    computation = Computation("c")
    computation.root = parameter(computation)
    for what, *numbers in steps:
        every = list(computation.instructions)
        a, b, c = (every[n % len(every)] for n in numbers)
        if what == "add":
            add(computation, a, b, control_predecessors=[c] if numbers[2] % 3 == 0 else [])
        elif what == "remove" and not any(a in i.control_predecessors for i in every):
            if a.users or a.is_root:
                with pytest.raises(FailedPreconditionError, match="in use"):
                    computation.remove(a)
            else:
                computation.remove(a)
                assert a not in computation.instructions
        elif what == "operand" and a.operands:
            computation.replace_operand(a, numbers[2] % 2, b)
            assert a.operands[numbers[2] % 2] is b
        elif what == "uses":
            kept = a is b or (a in b.operands)
            computation.replace_all_uses(a, b)
            assert kept or not a.users
            assert a is b or not a.is_root
        elif what == "root":
            computation.root = a
        assert_users_right(computation)
    assert_order_right(computation)


def test_replacing_by_itself_changes_nothing():
    computation = Computation("c")
    x = parameter(computation)
    y = add(computation, x, x)
    computation.root = y
    computation.replace_all_uses(x, x)
    assert x.users == {y: 2}


def test_replacing_all_uses_by_a_user_keeps_that_one():
    """How an operation is put between a value and its readers."""
    computation = Computation("c")
    x = parameter(computation)
    y = add(computation, x, x)
    computation.root = y
    z = computation.add("negate", [x], shape=VECTOR)
    computation.replace_all_uses(x, z)
    assert (z.operands, y.operands) == ((x,), (z, z))
    assert_users_right(computation)
    assert_order_right(computation)


@pytest.mark.parametrize("index, want", [(0, "zy"), (1, "xz"), (-1, "xz")])
def test_operands_are_replaced_in_their_place(index, want):
    computation = Computation("c")
    named = {name: parameter(computation, k) for k, name in enumerate("xyz")}
    user = add(computation, named["x"], named["y"])
    computation.replace_operand(user, index, named["z"])
    assert user.operands == tuple(named[n] for n in want)
    assert_users_right(computation)
    with pytest.raises(IndexError):
        computation.replace_operand(user, 2, named["x"])


def test_replacements_have_the_same_shape_but_for_layouts():
    computation = Computation("c")
    x, s = parameter(computation, 0), parameter(computation, 1, SCALAR)
    twin = parameter(computation, 2, VECTOR.with_layout(row_major(1)))
    y = add(computation, x, x)
    for replace in (lambda: computation.replace_operand(y, 0, s), lambda: computation.replace_all_uses(x, s)):
        with pytest.raises(ShapeError):
            replace()
    assert_users_right(computation)
    computation.replace_operand(y, 0, twin)
    assert y.operands == (twin, x)


def test_primitives_record_changes():
    computation = Computation("c")
    x = parameter(computation)
    y = add(computation, x, x)
    z = add(computation, y, x)
    computation.changed.clear()
    computation.replace_operand(z, 0, x)
    assert computation.changed == [z, y]
    computation.remove(y)
    assert computation.changed[2:] == [x]


def test_an_operation_that_needs_itself():
    computation = Computation("c")
    x = parameter(computation)
    y = add(computation, x, x)
    computation.root = add(computation, y, y)
    computation.replace_operand(y, 0, computation.root)
    assert_order_right(computation)


def test_post_order_is_not_deep():
    computation = Computation("c")
    last = parameter(computation)
    for _ in range(5000):
        last = computation.add("negate", [last], shape=VECTOR)
    computation.root = last
    assert computation.post_order() == list(computation.instructions)


def test_post_order_starts_with_the_operands_of_the_root():
    computation = Computation("c")
    x = parameter(computation)
    unused = add(computation, x, x)
    first = computation.add("negate", [x], shape=VECTOR)
    computation.root = add(computation, x, x, control_predecessors=[first])
    assert computation.post_order() == [x, first, computation.root, unused]


def test_attributes_are_checked_and_completed():
    computation = Computation("c")
    x = parameter(computation)
    compare = computation.add("compare", [x, x], {"direction": "LT"}, shape=Shape.array("pred", (4,)))
    assert compare.attrs == {"direction": "LT", "type": "FLOAT"}
    with pytest.raises(ShapeError, match="no attribute 'dir'"):
        computation.add("compare", [x, x], {"dir": "LT"}, shape=VECTOR)
    with pytest.raises(ShapeError, match="needs the attribute 'direction'"):
        computation.add("compare", [x, x], shape=VECTOR)
    with pytest.raises(NotFoundError, match="'compair'") as caught:
        computation.add("compair", [x, x], shape=VECTOR)
    assert "compare" in caught.value.hint
    assert len(computation.instructions) == 2
    assert x.users == {compare: 2}


def test_parameters_are_in_order_of_their_numbers():
    computation = Computation("c")
    made = [parameter(computation, k) for k in (2, 0, 1)]
    assert computation.parameters == [made[1], made[2], made[0]]
    with pytest.raises(FailedPreconditionError, match="no root"):
        _ = computation.root


CALLS = """
HloModule m
leaf { x = f32[] parameter(0) ROOT y = f32[] negate(x) }
effect { x = f32[] parameter(0) t = token[] after-all() o = token[] outfeed(x, t) ROOT y = f32[] negate(x) }
middle { x = f32[] parameter(0) a = f32[] call(x), to_apply=leaf ROOT b = f32[] call(a), to_apply=effect }
unused { x = f32[] parameter(0) ROOT y = f32[] negate(x) }
ENTRY e {
  x = f32[] parameter(0)
  a = f32[] call(x), to_apply=leaf
  b = f32[] call(a), to_apply=middle
  ROOT c = f32[] add(a, b)
}
"""


def test_the_call_graph():
    module = parse_module(CALLS)
    assert [c.name for c in module.post_order()] == ["leaf", "effect", "middle", "e"]
    assert module.instruction_count == sum(len(c.instructions) for c in module.computations.values()) == 15
    assert [c.has_side_effect for c in module.post_order()] == [False, True, True, True]
    assert repr(module) == "HloModule(m, 5 computations, 15 instructions)"
    assert [p.opcode for p in module.parameters] == ["parameter"]


def test_computations_that_call_themselves():
    module = parse_module(CALLS)
    by_name = module.computations
    call = next(i for i in by_name["leaf"].instructions if i.opcode == "negate")
    call.called = (by_name["middle"],)
    with pytest.raises(InvalidArgumentError, match="calls itself"):
        computations_post_order(module.entry)


def test_names_of_computations():
    module = HloModule("m")
    assert [module.new_computation("f").name for _ in range(3)] == ["f", "f.1", "f.2"]
    assert all(c.module is module for c in module.computations.values())
    with pytest.raises(InvalidArgumentError, match=r"computation f\.1 already"):
        module.add_computation(Computation("f.1"))
    with pytest.raises(FailedPreconditionError, match="no entry"):
        _ = module.entry


class Counting(Visitor):
    def __init__(self):
        self.seen = []

    def handle_default(self, ins):
        self.seen.append(f"default {ins.opcode}")

    def handle_add(self, ins):
        self.seen.append("add")
        return "sum"


class More(Counting):
    def handle_get_tuple_element(self, ins):
        self.seen.append(f"part {ins.attrs['index']}")


PARTS = "ENTRY e { t = (f32[], f32[]) parameter(0) a = f32[] get-tuple-element(t), index=1 ROOT s = f32[] add(a, a) }"


@pytest.mark.parametrize("visitor, seen", [
    (Counting, ["default parameter", "default get-tuple-element", "add"]),
    (More, ["default parameter", "part 1", "add"]),
])  # fmt: skip
def test_visitors_dispatch_by_opcode(visitor, seen):
    entry, counting = parse_module(PARTS).entry, visitor()
    counting.visit(entry)
    assert counting.seen == seen
    assert entry.root.visit(counting) == "sum"


def test_visitors_without_a_handler_say_so():
    class Few(Visitor):
        pass

    with pytest.raises(UnimplementedError, match="Few does not handle parameter") as caught:
        Few().visit(parse_module(PARTS).entry)
    assert caught.value.where == "%t = (f32[], f32[]) parameter()"
