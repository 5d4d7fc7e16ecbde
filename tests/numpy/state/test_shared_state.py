"""Programs whose state has several names, or is replaced between calls: they print what they print without `jit`."""

import dataclasses
import functools
import linecache
import types

import numpy as np
import pytest

import cyxla

CLASS = """
class K:
    def __init__(self, held):
        self.held = held

    def get(self):
        return self.held

    @property
    def value(self):
        return self.held

"""
#: Texts of programs, by name; `x` is an array.
PROGRAMS = {
    "aliased arrays in dicts": """
def hold(v):
    def get():
        return v
    return get
TOP, OTHER = hold({"held": np.array([2, 1, 3])}), hold({"held": np.arange(3.0)})
@jit
def main(x, h, g):
    r = h()["held"] * x
    return r, g()["held"]
OTHER()["held"] = TOP()["held"]
main(x, TOP, OTHER); TOP()["held"] = np.array([7, 7, 7])
print(main(x, TOP, OTHER)[1])
""",
    "append beside an error": """
TOP = K([1.0])
@jit
def main(x):
    if x[0] > 0:
        TOP.held.append(0.5)
    else:
        r = r + len(TOP.held)
main(x)
print(TOP.held)
""",
    "append under a condition": """
class S:
    held = types.SimpleNamespace(held=[3.0, -1.0])
TOP = OTHER = S()
@jit
def main(x, v):
    OTHER.held.held = list(TOP.held.held)
    if x[0] > 0:
        OTHER.held.held += [0.5]
    return x
for s in (-x, -x, x, -x):
    main(s, TOP.held.held)
print(S.held.held)
""",
    "argument is a global dict": """
TOP = {"held": 0.5}
@jit
def main(x, h):
    h["held"] = x.sum()
    h["held"] = TOP["held"] * 2
    return x
main(x, TOP)
print(TOP)
""",
    "argument is a global list": """
TOP = [3.0, -1.0]
@jit
def main(x, h):
    TOP.pop()
    return x * h[-1], len(h)
print(main(x, TOP))
""",
    "argument is a global object": """
@dataclasses.dataclass
class D:
    held: float
TOP = D(-1.0)
@jit
def main(x, h):
    h.held = 5.0
    return x.sum() + TOP.held
print(main(x, TOP), TOP.held)
""",
    "argument is held sorted": """
TOP = K([3.0, -1.0])
@jit
def main(x, v):
    TOP.held += [0.5]
    v.sort()
    return x
main(x, TOP.held)
print(TOP.held)
""",
    "bound method returned": """
TOP = K(K(1.0).get)
@jit
def main(x):
    return TOP.held
m = main(x)
print(m.__func__ is K.get, m == TOP.held)
""",
    "closure kept": """
def hold(v):
    def access(*new):
        nonlocal v
        if new:
            v = new[0]
        return v
    return access
TOP = hold(1.0)
@jit
def main(x):
    global TOP
    TOP = hold(2.0)
    return x
main(x)
print([type(c.cell_contents).__name__ for c in TOP.__closure__])
""",
    "default is a global": """
TOP = [False, 1.5]
OTHER = TOP
@jit
def main(x, h=TOP):
    h[0] = not h[0]
    return x, OTHER[0]
print(main(x)[1])
""",
    "dict replaced in a loop": """
TOP, OTHER = {"held": [{"a": 2.0}, 1.5]}, {"held": [{"a": 0.5}, 1.5]}
@jit
def main(x, h):
    for e in x:
        h["held"][0] = {**OTHER["held"][0], "c": 1.5}
    return TOP["held"][0]
print(main(x, TOP))
""",
    "error in a branch": """
TOP = K([1.0])
@jit
def main(x, v, k):
    if x[0] > 0:
        TOP.held = v + k
    else:
        r = r + (x > v).sum()
try:
    print(main(x, [3.0, -1.0], 2))
except TypeError as error:
    print(type(error).__name__)
""",
    "error then a number changes": """
TOP, OTHER = 2.0, [1.0]
@jit
def main(x):
    r = 0.0
    r = r + TOP
    r = r + OTHER
for _ in range(2):
    try:
        print(main(x))
    except TypeError as error:
        print(type(error).__name__)
    TOP = 3.0
""",
    "function attribute array": """
def hold(v):
    def get():
        return get.held
    get.held = v
    return get
get = hold(np.eye(2))
@jit
def main(x):
    get.held[0] += 1.0
    return x.sum() + get()
print(main(x))
print(main(x))
print(get.held)
""",
    "function attribute number": """
def hold(v):
    def get():
        return get.held
    get.held = v
    return get
get = hold(0.5)
@jit
def main(x):
    return x * get.held
print(main(x)); get.held = 3.0
print(main(x))
""",
    "function attribute object": """
@dataclasses.dataclass
class Pair:
    a: float
    items: object
def hold(v):
    def get():
        pass

    get.held = v
    return get
TOP = hold(Pair(1.0, [0.5, 2.0]))
@jit
def main(x, h=TOP):
    return {"r": x * 1.0, "p": TOP.held}
print(main(x)["p"] is TOP.held)
TOP.held.a = 5.0
print(main(x)["p"].a)
""",
    "function attribute tracer": """
def hold(v):
    def get():
        return get.held
    get.held = v
    return get
get = hold([1.0, 2.0])
@jit
def main(x):
    get()[0] = x[0]
main(x)
print(get.held)
""",
    "function kept": """
def hold(v):
    def get():
        return v
    return get
TOP, BAG = hold(1.0), []
@jit
def main(x):
    BAG.append(TOP)
    return x
main(x)
print(BAG[0] is TOP)
""",
    "function made anew": """
def hold(v):
    def get():
        return v
    return get
TOP = K(hold(2.0))
@jit
def main(x):
    TOP.held = hold(2.0)
    return x
main(x); a = TOP.held; main(x)
print(TOP.held is not a)
""",
    "method in an instance": """
TOP = K(2.0)
@jit
def main(x):
    return x * TOP.get()
print(main(x)); TOP.get = lambda: 7.0
print(main(x))
""",
    "module from a module": """
def module(v):
    made = types.ModuleType("m")
    made.held = v
    return made
TOP = K(module(module([1.0, 2.0])))
@jit
def main(x):
    return x * TOP.held.held.held[0]
print(main(x)); TOP.held.held = module([5.0, 6.0])
print(main(x))
""",
    "module replaced": """
def hold(v):
    made = types.ModuleType("held")
    made.held = v
    return made
TOP, OTHER = K(hold(1)), K(hold(0))
@jit
def main(x, h):
    return x.sum(), OTHER.held.held
print(main(x, OTHER)[1]); OTHER.held = TOP.held
print(main(x, OTHER)[1])
""",
    "modules in partials": """
def same(a, held):
    return held
def module(v):
    made = types.ModuleType("m")
    made.held = v
    return made
TOP = functools.partial(same, held=module(module([1.0, 2.0])))
OTHER = functools.partial(same, held=module(module([3.0, 4.0])))
@jit
def main(x):
    return OTHER(1).held.held
main(x); OTHER.keywords["held"] = TOP(1)
print(main(x)); TOP(1).held = module([5.0, 6.0])
print(main(x))
""",
    "partial made": """
def same(a, held):
    return held
TOP = K(functools.partial(same, held=1.0))
@jit
def main(x):
    TOP.held = functools.partial(same, held=[1.0, 2.0])
    return x
main(x)
print(TOP.held.func is same)
""",
    "print list argument": """
TOP, OTHER = [0.5], [1.0, 2.0, 0.5]
@jit
def main(x, v):
    print(len(v), v)
    return x
main(x, TOP); main(x, OTHER); main(x, [1.0, 2.0, 0.25])
""",
    "print list of a class": """
class C:
    held = K([0.5])
@jit
def main(x):
    print(len(C.held.held), C.held.held)
    return x
main(x); C.held.held.insert(0, 1.5); main(x)
""",
    "property code": """
TOP = K(2.0)
@jit
def main(x):
    return x * TOP.value
print(main(x)); K.value.fget.__code__ = (lambda self: 7.0).__code__
print(main(x))
""",
    "rebound object kept": """
TOP, OTHER, BAG = {"held": K(2.0)}, {"held": K(0.5)}, []
@jit
def main(x, v, w):
    BAG[:] = [TOP]
    return x
OTHER["held"] = TOP["held"]
main(x, TOP["held"], OTHER["held"]); main(x, TOP["held"], OTHER["held"]); TOP = OTHER
main(x, TOP["held"], OTHER["held"])
print(BAG[0] is TOP)
""",
    "same list twice": """
TOP, OTHER = [[1.0, 2.0]] * 2, [[1.5, 0.0], [2.0, 1.0], [3.0, 3.0]]
@jit
def main(x, v, w):
    global TOP, OTHER
    OTHER = [w[0], w[0]]
for _ in range(2):
    old = OTHER[0]; main(x, TOP, OTHER)
print(OTHER[0] is old, OTHER[1] is old)
""",
    "swap in a loop": """
@dataclasses.dataclass
class D:
    held: object
OTHER = D([np.ones(2), np.arange(2.0)])
TOP = D([[1.0, 2.0], [0.5, 4.0]])
@jit
def main(x, h):
    for e in x:
        TOP.held, OTHER.held = OTHER.held, TOP.held
    OTHER.held = h.held[:2]
main(x, OTHER)
print(OTHER.held, TOP.held)
""",
    "write goes to the argument": """
TOP, OTHER = K(True), K(True)
@jit
def main(x, h):
    TOP.held = not TOP.held
    TOP.held = False
    return x
main(x, OTHER); main(x, TOP)
print(TOP.held, OTHER.held); main(x, OTHER)
print(TOP.held, OTHER.held)
""",
    "a tuple under two names": """
TOP = OTHER = ([[1.5, 0.0], [2.0, 1.0]], 1.5)
@jit
def main(x):
    TOP[0][0] = [9.0, 9.0]
    a = OTHER[0]
    a[0], a[1] = a[1], a[0]
for _ in range(2):
    main(x)
    print(TOP)
""",
    "attribute of a function in a helper": """
def make(v):
    def get():
        pass
    get.held = v
    return get
TOP = make(2.0)
def read(h):
    return h.held
@jit
def main(x):
    return x * read(TOP)
for TOP.held in (2.0, 0.5, 0.25):
    print(main(x))
""",
    "property with a function": """
TOP = [lambda: OTHER, 1.5]
OTHER = K(lambda: 2.0)
def read(h):
    return h[0]().value()
@jit
def main(x):
    return x * read(TOP)
print(main(x))
K.value.fget.__code__ = (lambda self: lambda: 7.0).__code__
print(main(x))
""",
    "lists that become one": """
TOP, OTHER = [1.0, 2.0], [5.0, 2.0]
@jit
def main(x):
    TOP[0] += 1
    return x * OTHER[0]
print(main(x))
OTHER[0], TOP[0] = 3.0, 3.0
print(main(x))
OTHER = TOP
print(main(x))
print(main(x))
""",
    "a list or another in a branch": """
TOP, OTHER = K([3.0, -1.0]), K([1.0, 2.0])
mine = OTHER.held
@jit
def main(x, k):
    if x[0] > k:
        OTHER.held = TOP.held
for k in (2, 2, 0):
    main(x, k)
    print(OTHER.held is mine, OTHER.held is TOP.held)
""",
    "module in a class": """
def module(v):
    made = types.ModuleType("m")
    made.held = v
    return made
class C:
    held = module(1.0)
@jit
def main(x):
    return C.held.held + x
for C.held in (module(1.0), module(2.0), module(3.0)):
    print(main(x))
""",
    "attribute of a module in a partial": """
def same(a, held):
    return held
TOP = functools.partial(same, held=types.ModuleType("m"))
TOP(1).held = 3
@jit
def main(x):
    if TOP(1).held > 1:
        TOP(1).held += 1
    return TOP(1).held
for _ in range(3):
    print(main(x), TOP(1).held)
""",
    "attribute of the function of a method": """
def make(v):
    def get():
        pass
    get.held = v
    return get
class A:
    def own(self):
        return self.held
class B(A):
    def own(self):
        return super().own()
A.held = make(K(False).get)
TOP = B()
@jit
def main(x, k):
    TOP.own().held.__self__.held = k > 1
for k in (2, 1):
    main(x, k)
    print(TOP.own().held.__self__.held)
""",
    "number of a class by the values, beside an array passed twice": """
BOX = types.SimpleNamespace(level=1.0)
@jit
def main(x, k, v, w):
    w[0] = k
    if x.sum() > k:
        BOX.level += x[0]
for k in (90, 1, 90):
    main(x, k, (y := x.copy()), y)
    print(repr(BOX.level), y)
""",
    "list of a partial that a function holds": """
def same(a, held):
    return held
def get():
    pass
get.held = functools.partial(same, held=[1.5, np.array([2, 1, 3])])
@jit
def main(x):
    return x + get.held(1)[-1].max(), get.held(1)
for _ in range(2):
    r, held = main(x)
    print(r, held is get.held(1))
    get.held(1)[-1][:] = 1
""",
    "function of a function's attribute replaced": """
def get():
    pass
def hold(v):
    return lambda: v
get.held = hold(3)
@jit
def main(x):
    return get.held() * x
print(main(x)); get.held = hold(0)
print(main(x))
""",
    "object of a function's attribute written": """
class Held(K):
    def __call__(self):
        return self.held
def get():
    pass
get.held = Held(types.SimpleNamespace(held=[1.0, 2.0]))
@jit
def main(x):
    get.held().held = [x[0], 2.0]
main(x)
print(get.held().held)
""",
    "method of a function's attribute": """
def get():
    pass
get.held = K(K({"a": 2.0})).get
@jit
def main(x):
    get.held().held = {"a": x[0], "b": 2.0}
main(x)
print(get.held().held)
""",
    "functions of a property replaced": """
def first(v):
    return v + 1
class P:
    @property
    def value(self):
        return first
    def __call__(self, v):
        return first(v)
    def __getitem__(self, k):
        return first
TOP = P()
@jit
def main(x):
    return TOP.value(x), TOP(x), TOP[0](x)
print(main(x))
def first(v):
    return v * 10
print(main(x))
""",
    "property whose code is replaced": """
TOP, SPARE = K(lambda: 2.0), lambda: 3.0
@jit
def main(x):
    return x * TOP.value()
print(main(x)); K.value.fget.__code__ = (lambda self: SPARE).__code__
print(main(x)); SPARE = lambda: 4.0
print(main(x))
""",
    "attribute of a class set in a branch": """
class A:
    n = 1.0
@jit
def main(x, h):
    if x.sum() > 10:
        h.n = x[0]
for own in (True, False):
    for scale in (1.0, 4.0):
        h = A()
        if own:
            h.n = 5.0
        main(x * scale, h)
        print(vars(h))
""",
    "attribute of a base class set in a branch": """
class A:
    n = 1.0
class B(A):
    pass
@jit
def main(x):
    if x.sum() > 10:
        B.n = x[0]
for scale in (1.0, 4.0, 1.0):
    main(x * scale)
    print("n" in vars(B), B.n, A.n)
""",
    "error of a run, beside one of a trace for another size": """
TOP, OTHER = K(np.array([2, 1, 3])), K(np.array([2, 1, 3]))
@jit
def main(x):
    r = x * 1.0
    if x[0] > 0:
        r = r + TOP.held.sum() * x
    return r + (x + OTHER.held)
print(main(x)); TOP.held = [0.5]
for size in (3, 4):
    try:
        main(np.ones(size))
    except Exception as error:
        print(type(error))
""",
    "global object of a class whose methods are rewritten": """
class Held(K):
    def __call__(self):
        return self.held
def same(held):
    return held
TOP, SPARE = functools.partial(same, Held({"b": 4.0, "a": 3})), Held({"a": 0.5, "b": 2.0})
@jit
def main(x):
    del TOP().held["b"]
    return x + sum(TOP().held.values())
print(main(x)); same.__code__ = (lambda held: SPARE).__code__
print(main(x)); SPARE.held = {"b": 4.0, "a": 3}
print(main(x), SPARE.held)
""",
    "object returned beside an array passed twice": """
@dataclasses.dataclass
class D:
    held: object
TOP, LOG = D(np.array([1.0, 5.0])), [1.0]
@jit
def main(x, v, w):
    w[w > 1] = 1
    return [TOP, TOP, (LOG, w)]
a, b, (c, d) = main(x, TOP.held, TOP.held)
print(a is TOP, b is TOP, c is LOG, d is TOP.held, TOP.held)
""",
    "method returned by a property": """
TOP = K(K(1.0).get)
@jit
def main(x):
    return [TOP.value, x]
print(main(x)[0].__func__ is K.get, main(x)[0].__self__ is TOP.held.__self__)
""",
    "global that a branch makes a default": """
@dataclasses.dataclass
class D:
    held: object
TOP, OTHER = D(1.0), D(2.0)
@jit
def main(x, h=TOP):
    global OTHER
    if x.sum() > 10:
        OTHER = h
for scale in (1.0, 4.0):
    old = OTHER
    main(x * scale)
    print(OTHER is old, OTHER is TOP)
""",
}


def printed(name, jit, capsys, monkeypatch):
    """Return what a program prints."""
    file, text = f"<{name}, {jit.__name__}>", CLASS + PROGRAMS[name]
    monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(keepends=True), file))
    names = {
        "__name__": __name__, "jit": jit, "x": np.array([1.0, 2.0, 3.0]), "np": np, "types": types,
        "functools": functools, "dataclasses": dataclasses,
    }  # fmt: skip
    exec(compile(text, file, "exec"), names)
    return capsys.readouterr().out


def plain(function):
    return function


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_programs_print_the_same(name, capsys, monkeypatch):
    expected = printed(name, plain, capsys, monkeypatch)
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    assert expected
    assert printed(name, cyxla.jit, capsys, monkeypatch) == expected
