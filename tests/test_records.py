"""Dataclasses whose methods are written at their first use are dataclasses in every respect."""

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import threading
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
