"""Dataclasses whose methods are written at their first use are dataclasses in every respect."""

import copy
import dataclasses
import importlib
import inspect
import operator
import pickle
import pkgutil
import re
import threading
import typing
from abc import ABC, abstractmethod
from dataclasses import field
from typing import ClassVar, Generic, TypeVar

import pytest

import cyxla
from cyxla.records import dataclass

T = TypeVar("T")


def is_complete(cls):
    return cls.__dict__["__init__"].__name__ == "__init__"


@dataclass(frozen=True)
class Frozen:
    """Size and name of something."""

    size: int
    name: str = "none"
    parts: list[int] = field(default_factory=list, compare=False)
    count: ClassVar[int] = 3


@dataclass
class Plain:
    size: int
    hidden: int = field(default=5, repr=False)
    made: dict[str, int] = field(default_factory=dict, init=False)
    fixed: int = field(default=7, init=False)


@dataclass(eq=False)
class ByIdentity:
    size: int = 0


@dataclass(frozen=True)
class Checked:
    size: int

    def __post_init__(self):
        if self.size < 0:
            raise ValueError("negative")


@dataclass
class Base:
    first: int
    second: int = 2


@dataclass
class Derived(Base):
    second: int = 3
    third: int = 4


class Undecorated(Derived):
    def __init__(self):
        super().__init__(10)


@dataclass
class OwnMethods:
    size: int

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __repr__(self):
        return "own"


@dataclass
class Container(Generic[T]):
    value: T


class Interface(ABC):
    @abstractmethod
    def run(self):
        """Run."""


@dataclass
class Implementation(Interface):
    size: int

    def run(self):
        return self.size


CALLS = {
    "frozen": (Frozen, (1,), {"name": "x"}),
    "list of its own": (Frozen, (1, "y", [1]), {}),
    "plain": (Plain, (1,), {}),
    "identity": (ByIdentity, (), {}),
    "checked": (Checked, (3,), {}),
    "derived": (Derived, (1,), {"third": 9}),
    "own methods": (OwnMethods, (1,), {}),
    "generic": (Container, ("a",), {}),
    "abstract base": (Implementation, (4,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_instances_have_all_methods(name):
    cls, args, keywords = CALLS[name]
    one, other = cls(*args, **keywords), cls(*args, **keywords)
    assert is_complete(cls)
    assert dataclasses.is_dataclass(cls)
    assert (one == other) is (cls is not ByIdentity)
    assert cls.__init__.__qualname__ == f"{cls.__qualname__}.__init__"
    assert dataclasses.replace(one, **keywords).__dict__ == one.__dict__
    assert copy.copy(one).__dict__ == copy.deepcopy(one).__dict__ == one.__dict__
    assert pickle.loads(pickle.dumps(one)).__dict__ == one.__dict__
    assert list(inspect.signature(cls).parameters) == [f.name for f in dataclasses.fields(cls) if f.init]


@dataclass
class Copied:
    size: int


def test_only_the_first_copy_completes_the_class():
    one = object.__new__(Copied)
    one.__dict__["size"] = 3
    assert not is_complete(Copied)
    assert copy.copy(one) == pickle.loads(pickle.dumps(one)) == Copied(3)
    assert is_complete(Copied)
    assert not hasattr(Copied, "__setstate__")


def test_values_and_texts():
    assert repr(Frozen(1)) == "Frozen(size=1, name='none', parts=[])"
    assert repr(Plain(1)) == "Plain(size=1, made={}, fixed=7)"
    assert repr(OwnMethods(1)) == "own"
    assert Frozen(1, parts=[1]) == Frozen(1, parts=[2])
    assert Frozen(1) != Frozen(2)
    assert Frozen(1).__eq__(1) is NotImplemented
    assert hash(Frozen(1)) == hash(Frozen(1, parts=[2]))
    assert Frozen(1).parts is not Frozen(1).parts
    assert Derived(1) != Base(1)
    assert vars(Derived(1)) == {"first": 1, "second": 3, "third": 4}
    assert vars(Undecorated()) == {"first": 10, "second": 3, "third": 4}
    assert hash(OwnMethods(2)) == 1
    assert Plain.__hash__ is None
    assert ByIdentity.__hash__ is object.__hash__
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


@pytest.mark.parametrize("args", [(), (1, "x", [], 3), (1, "x", [], "y")])
def test_wrong_arguments(args):
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        Frozen(*args)
    with pytest.raises(TypeError, match="unexpected keyword"):
        Frozen(1, other=2)


def test_frozen_fields_stay():
    value = Frozen(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        value.size = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'new'"):
        value.new = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'size'"):
        del value.size
    assert Frozen.__dataclass_params__.frozen
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclasses.dataclass(type("Wrong", (Frozen,), {}))


def test_patterns_take_fields_in_order():
    match Frozen(1, "x"):
        case Frozen(size, name):
            assert (size, name) == (1, "x")
        case _:
            pytest.fail("no match")


def make_class(**options):
    @dataclass(**options)
    class Fresh:
        size: int

    return Fresh


USES = {
    "fields": dataclasses.fields,
    "is_dataclass": dataclasses.is_dataclass,
    "signature": inspect.signature,
    "instance": lambda cls: cls(1),
    "subclass": lambda cls: type("Sub", (cls,), {})(1),
    "copied state": lambda cls: cls.__new__(cls).__setstate__({"size": 1}),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"eq": False}])
def test_a_class_is_complete_from_its_first_use(use, options):
    cls = make_class(**options)
    assert not is_complete(cls)
    use(cls)
    assert is_complete(cls)
    assert cls(size=1).size == 1


AT_ONCE = {
    "slots": lambda: dataclass(slots=True)(type("C", (), {"__annotations__": {"size": int}})),
    "order": lambda: dataclass(order=True)(type("C", (), {"__annotations__": {"size": int}})),
    "keywords": lambda: dataclass(kw_only=True)(type("C", (), {"__annotations__": {"size": int}})),
}


@pytest.mark.parametrize("make", AT_ONCE.values(), ids=AT_ONCE)
def test_classes_with_other_options_are_complete_at_once(make):
    cls = make()
    assert is_complete(cls)
    assert cls(size=1).size == 1


# Each form of class is made by `dataclasses.dataclass` and by the deferred one, and both must behave the same. The name
# of the class is global, so that its instances can be pickled.


def no_fields(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        pass


def one_field(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        size: int


def six_fields(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        """Six values."""

        first: int
        second: "tuple[int, ...]"
        third: str = "x"
        fourth: list[int] | None = None
        fifth: bool = False
        sixth: dict[str, int] = field(default_factory=dict, hash=False)


def not_frozen(dataclass):
    global Made

    @dataclass
    class Made:
        size: int
        name: str = "none"
        parts: list[int] = field(default_factory=list)


def no_comparison(dataclass):
    global Made

    @dataclass(eq=False)
    class Made:
        size: int
        name: str = "none"


def frozen_without_comparison(dataclass):
    global Made

    @dataclass(frozen=True, eq=False)
    class Made:
        size: int
        name: str = "none"


def no_text(dataclass):
    global Made

    @dataclass(frozen=True, repr=False)
    class Made:
        size: int

        def __str__(self):
            return f"size {self.size}"


def flags_of_fields(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        compared: int
        not_compared: int = field(default=1, compare=False)
        not_hashed: list[int] = field(default_factory=list, hash=False)
        only_hashed: int = field(default=2, compare=False, hash=True)
        hidden: str = field(default="secret", repr=False)
        described: int = field(default=3, metadata={"unit": "m"})


def fields_without_parameters(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        made: dict[str, int] = field(default_factory=dict, init=False, hash=False)
        size: int
        fixed: int = field(default=7, init=False)
        unset: int = field(init=False, repr=False, compare=False)
        parts: list[int] = field(default_factory=list, hash=False)


def after_init(dataclass):
    global Made

    @dataclass
    class Made:
        size: int
        double: int = field(init=False)

        def __post_init__(self):
            if self.size < 0:
                raise ValueError("negative")
            self.double = 2 * self.size


def only_variables_of_the_class(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        count: ClassVar[int] = 3
        other: "ClassVar[int]" = 4

        def __post_init__(self):
            object.__setattr__(self, "extra", 1)


def mixed_variables(dataclass):
    global Made

    @dataclass
    class Made:
        first: int
        count: ClassVar[int] = 3
        second: int = 2


def parameter_without_field(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        size: int
        scale: dataclasses.InitVar[int] = 2

        def __post_init__(self, scale):
            object.__setattr__(self, "size", self.size * scale)


def keywords_of_fields(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        size: int = field(kw_only=True, default=1)
        name: str


def keywords_after_a_mark(dataclass):
    global Made

    @dataclass
    class Made:
        size: int
        _: dataclasses.KW_ONLY
        name: str
        part: int = 1


def names_of_the_text(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        absent: int
        assign: int
        new_5: int
        other: int
        cls: int
        _1: list[int] = field(default_factory=list, hash=False)
        _0: int = 6
        hash: int = 7
        object: int = 8


def field_named_self(dataclass):
    global Made

    @dataclass
    class Made:
        size: int
        self: int = 3


def own_comparison(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        size: int

        def __eq__(self, other):
            return isinstance(other, Made) and self.size % 2 == other.size % 2


def own_comparison_of_variables(dataclass):
    global Made

    @dataclass
    class Made:
        size: int

        def __eq__(self, other):
            return True


def own_hash(dataclass):
    global Made

    @dataclass
    class Made:
        size: int

        def __hash__(self):
            return 5


def no_hash(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        size: int
        __hash__ = None


def own_comparison_alone(dataclass):
    global Made

    @dataclass(eq=False)
    class Made:
        size: int

        def __eq__(self, other):
            return True


def own_text_and_patterns(dataclass):
    global Made

    @dataclass
    class Made:
        size: int
        __match_args__ = ("size", "size")

        def __repr__(self):
            return "own"


def derived(dataclass):
    global Made

    @dataclass
    class Parent:
        first: int
        second: int = 2
        third: list[int] = field(default_factory=list)

    @dataclass
    class Made(Parent):
        second: int
        fourth: int = 4


def frozen_of_frozen(dataclass):
    global Made

    @dataclass(frozen=True)
    class Parent:
        first: int
        count: ClassVar[int] = 3

        def double(self):
            return 2 * self.first

    @dataclass(frozen=True)
    class Made(Parent):
        second: int = 2


def derived_by_dataclasses(dataclass):
    global Made

    @dataclass(frozen=True)
    class Parent:
        first: int
        second: int = 2

    @dataclasses.dataclass(frozen=True)
    class Made(Parent):
        third: int = 3


def derived_through_other_classes(dataclass):
    global Made

    @dataclass
    class Parent:
        first: int

    class Between(Parent):
        def __post_init__(self):
            self.seen = self.first

    class Beside:
        second = 20

    @dataclass(eq=False)
    class Made(Between, Beside):
        second: int


def generic(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made(Generic[T]):
        value: T
        more: "list[T] | None" = None


def abstract(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made(Interface):
        size: int

        def run(self):
            return self.size


class Described(ABC):
    @abstractmethod
    def __init__(self, size):
        pass

    @abstractmethod
    def __repr__(self):
        pass

    @abstractmethod
    def run(self):
        pass


def abstract_methods_that_are_written(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made(Described):
        size: int

        def run(self):
            return self.size


def with_module_types(dataclass):
    global Made

    @dataclass(frozen=True)
    class Made:
        value: "Frozen"
        more: "dict[str, Plain] | None" = None


FORMS = [
    no_fields, one_field, six_fields, not_frozen, no_comparison, frozen_without_comparison, no_text, flags_of_fields,
    fields_without_parameters, after_init, only_variables_of_the_class, mixed_variables, parameter_without_field,
    keywords_of_fields, keywords_after_a_mark, names_of_the_text, field_named_self, own_comparison,
    own_comparison_of_variables, own_hash, no_hash, own_comparison_alone, own_text_and_patterns, derived,
    frozen_of_frozen, derived_by_dataclasses, derived_through_other_classes, generic, abstract,
    abstract_methods_that_are_written, with_module_types,
]  # fmt: skip
FORMS_AT_ONCE = [abstract_methods_that_are_written, derived_by_dataclasses]
NAMES = ("size", "name", "part", "second", "third", "scale", "_1", "self", "__dataclass_self__")
CALLS_OF_FORMS = [
    *[(range(1, n + 1), {}) for n in range(11)],
    *[((1,), {name: 5}) for name in NAMES],
    ((), {"size": 1}),
    ((), {"unknown": 1}),
    ((1,), {"unknown": 1}),
    ((-1,), {}),
    ((2,), {}),
    ((1,), {"name": 2}),
    ((1,), {"name": 2, "part": 3}),
]
METHODS = ("__init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__")


def outcome(function, *args, **kwargs):
    """Return the result of a call, or the class and text of its error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


def values(result):
    return result if isinstance(result, tuple) else dict(vars(result))


def description(cls):
    """Return everything that a class shows of its fields, options and methods."""
    init, methods = cls.__init__, [vars(cls)[name] for name in METHODS if callable(vars(cls).get(name))]
    return {
        "names": sorted(vars(cls)),
        "hash": vars(cls).get("__hash__", "inherited") is None,
        "fields": repr(cls.__dataclass_fields__),
        "options": repr(cls.__dataclass_params__),
        "patterns": cls.__match_args__,
        "signature": str(inspect.signature(cls)),
        "types": repr(outcome(typing.get_type_hints, init)),
        "annotations": repr(init.__annotations__),
        "defaults": (repr(init.__defaults__), repr(init.__kwdefaults__)),
        "file": init.__code__.co_filename,
        "methods": [(m.__module__, m.__name__, m.__qualname__) for m in methods],
        "parameters": [list(inspect.signature(m).parameters) for m in methods],
    }


def uses(instance):
    """Return the results of all uses of an instance."""
    cls = type(instance)
    names = [*cls.__dataclass_fields__, "unknown"]
    child = object.__new__(type("Child", (cls,), {}))
    vars(child).update(vars(instance))
    return {
        "text": [re.sub(" at 0x[0-9a-f]+", "", f(x)) for x in (instance, child) for f in (repr, str)],
        "hash": cls.__hash__ is object.__hash__ or outcome(hash, instance),
        "equal": (cls.__eq__(instance, 1), instance == child, child == instance),
        "dict": outcome(dataclasses.asdict, instance),
        "replaced": [values(outcome(dataclasses.replace, instance, **{name: 9})) for name in names],
        "copied": [
            vars(copy.copy(instance)),
            vars(copy.deepcopy(instance)),
            vars(pickle.loads(pickle.dumps(instance))),
        ],
        "assigned": [outcome(setattr, x, name, 5) for x in (instance, child) for name in names],
        "deleted": [outcome(delattr, x, name) for x in (instance, child) for name in [*names, "absent"]],
        "changed": (vars(instance), vars(child)),
    }


def behaviour(cls):
    """Return everything that a class shows and does."""
    results = [outcome(cls, *args, **kwargs) for args, kwargs in CALLS_OF_FORMS]
    instances = [x for x in results if isinstance(x, cls)]
    return {
        "instances": len(instances) > 0,
        "calls": [values(x) for x in results],
        "init": [outcome(cls.__init__), outcome(cls.__init__, instances[0])],
        "equal": [outcome(operator.eq, x, y) for x in instances for y in instances],
        "uses": [outcome(uses, x) for x in instances],
        **description(cls),
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_deferred_class_is_like_one_of_dataclasses(form):
    form(dataclasses.dataclass)
    expected = behaviour(Made)
    form(dataclass)
    assert is_complete(Made) is (form in FORMS_AT_ONCE)
    assert behaviour(Made) == expected
    assert expected["instances"]
    assert not any(isinstance(x, tuple) for x in expected["uses"])


def test_methods_have_names_of_their_class():
    cls = make_class(frozen=True)
    cls(1)
    assert [vars(cls)[name].__qualname__ for name in METHODS] == [f"{cls.__qualname__}.{name}" for name in METHODS]


def default_before_none(dataclass):
    @dataclass
    class Wrong:
        first: int = 1
        second: int

    return Wrong


def mutable_default(dataclass):
    @dataclass(frozen=True)
    class Wrong:
        first: list[int] = []  # noqa: RUF012

    return Wrong


def field_without_type(dataclass):
    @dataclass
    class Wrong:
        first = field(default=1)

    return Wrong


def two_marks(dataclass):
    @dataclass
    class Wrong:
        first: int
        _: dataclasses.KW_ONLY
        second: int
        __: dataclasses.KW_ONLY

    return Wrong


def factory_of_the_class(dataclass):
    @dataclass
    class Wrong:
        first: ClassVar[list[int]] = field(default_factory=list)

    return Wrong


def frozen_of_not_frozen(dataclass):
    @dataclass(frozen=True)
    class Wrong(Base):
        third: int = 3

    return Wrong


def not_frozen_of_frozen(dataclass):
    @dataclass
    class Wrong(Checked):
        second: int = 3

    return Wrong


MISTAKES = [
    default_before_none, mutable_default, field_without_type, two_marks, factory_of_the_class, frozen_of_not_frozen,
    not_frozen_of_frozen,
]  # fmt: skip


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_class_is_an_error_of_its_first_use(mistake, use):
    error, text = outcome(mistake, dataclasses.dataclass)
    wrong = mistake(dataclass)
    assert issubclass(error, Exception)
    assert [outcome(use, wrong), outcome(wrong, 1), outcome(wrong)] == [(error, text)] * 3


def test_fields_are_compared_as_tuples():
    nan = float("nan")
    no_fields(dataclass)
    assert Made() == Made()
    one_field(dataclass)
    assert Made(nan) == Made(nan)  # as (nan,) == (nan,)
    assert Made(nan) != Made(float("nan"))
    assert hash(Made(nan)) == hash((nan,))
    not_frozen(dataclass)
    assert Made(1, nan) == Made(1, nan)
    assert Made(1, nan) != Made(1, float("nan"))
    assert Made(1).__eq__(Made(1)) is True
    assert Made(1).__eq__(Made(2)) is False


@pytest.mark.parametrize("decorator", [dataclasses.dataclass, dataclass])
def test_texts_of_recursive_values_end(decorator):
    not_frozen(decorator)
    one, other = Made(1), Made(2)
    one.parts += [one, other]
    other.parts.append(one)
    assert repr(one) == ("Made(size=1, name='none', parts=[..., Made(size=2, name='none', parts=[...])])")
    inner = type("Inner", (Made,), {"__qualname__": "Outer.Inner"})
    assert repr(inner(3)) == "Outer.Inner(size=3, name='none', parts=[])"


def test_many_threads_may_be_first():
    for _ in range(20):
        cls, results = make_class(frozen=True), []
        start = threading.Barrier(8)

        def use(cls=cls, results=results, start=start):
            start.wait()
            results.append((cls(1) == cls(1), hash(cls(2)) == hash(cls(2))))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [(True, True)] * 8


def modules():
    for module in pkgutil.walk_packages(cyxla.__path__, "cyxla."):
        if module.name.split(".")[1] in ("numpy", "types", "xla"):
            yield importlib.import_module(module.name)


def test_every_class_of_the_package_can_be_completed():
    classes = {v for m in modules() for v in vars(m).values() if isinstance(v, type) and v.__module__ == m.__name__}
    records = [c for c in classes if "__dataclass_fields__" in vars(c)]
    assert len(records) > 100
    for cls in records:
        names = [f.name for f in dataclasses.fields(cls) if f.init]
        is_written = cls.__init__.__code__.co_filename == "<string>"
        assert not is_written or list(inspect.signature(cls).parameters) == names, cls
    assert all(is_complete(c) for c in records)
