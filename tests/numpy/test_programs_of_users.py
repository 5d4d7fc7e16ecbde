"""Programs as users write them: a jitted function gives what the plain one gives, call by call.

A row has a function that makes a program, and the arguments of each call. Program and arguments are made twice: once
for the plain function, once for the jitted one. Compared are results, exceptions, the arguments afterwards, and the
state that the program shows by its attribute `state`.
"""

import copy
import dataclasses

import numpy as np
import pytest

import cyxla

REBOUND = "a new value of a class's attribute is not seen"
SINGULAR = "LinAlgError leaves the function, whatever handles it there"
ASSERT = "assert on a traced value is refused"
NUMBERS = "Python's integers have 64 bits, and raise beyond them"
SPECTRUM = "eigenvalues are complex while tracing, since their dtype depends on values"
X = np.arange(4.0) + 1
A = np.arange(9.0).reshape(3, 3) + np.eye(3) * 9


@dataclasses.dataclass
class Pair:
    w: np.ndarray
    b: np.ndarray


def gemm(alpha, beta, c, a, b):
    c[:] = alpha * a @ b + beta * c


def jacobi(steps, a, b):
    for _ in range(1, steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def augment(x):
    x += 1


def element(x):
    x[0] = 9
    return x.sum()


def masked(x):
    x[x > 2] = 0


def scaled_mask(x):
    x[x > 2] *= 2


def sort(x):
    x.sort()


def fill(x):
    x.fill(0)


def out(x):
    np.add(x, 1, out=x)


def add_at(x, i):
    np.add.at(x, i, 1)


def view(x):
    y = x[1:]
    y *= 2
    return y


def in_dict(d):
    d["a"] += 1


def new_key(d):
    d["b"] = d["a"] * 2


def append(items, x):
    items.append(x.sum())


def dataclass(pair, x):
    pair.w += x
    pair.b = pair.b + 1
    return pair.w.sum()


def subtract_mean(data):
    data -= data.mean(axis=0)
    return data.T @ data


def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


def shuffle(rng, x):
    rng.shuffle(x)


def update_twice(x, y):
    x += y
    y += x


# -- state outside


def make_accumulator():
    h = np.zeros(3)

    def acc():
        h[:] += 1
        return h.sum()

    acc.state = lambda: h
    return acc


def make_accumulator_of_arguments():
    h = np.zeros(3)

    def acc(x):
        h[:] += x[:3]
        return h.sum() + x

    acc.state = lambda: h
    return acc


def make_rebinding():
    def acc(x):
        space["G"] = space["G"] + x.sum()
        return space["G"]

    space = {"G": 0.0}
    acc.state = lambda: space["G"]
    return acc


def make_nonlocal():
    total = 0.0

    def acc(x):
        nonlocal total
        total = total + x.sum()
        return total

    acc.state = lambda: total
    return acc


def make_list():
    log = []

    def f(x):
        log.append(x.sum())
        return x * 2

    f.state = lambda: log
    return f


def make_attribute():
    class Model:
        w = 0.0

    model = Model()

    def step(x):
        model.w = model.w + x.sum()
        return model.w

    step.state = lambda: model.w
    return step


def make_constant_written_between_calls():
    w = np.ones(4)

    def f(x):
        return x @ w

    f.between = lambda: w.__setitem__(slice(None), w + 1)
    return f


def make_attribute_rebound_between_calls():
    class Model:
        w = np.ones(4)

    def f(x):
        return x @ Model.w

    f.between = lambda: setattr(Model, "w", Model.w * 2)
    return f


# -- control flow and errors


def swallow_float(x):
    try:
        s = float(x.max())
    except (TypeError, ValueError):
        s = 1.0
    return x / s


def swallow_condition(x):
    try:
        if x.sum() > 0:
            return x
    except Exception:
        pass
    return -x


def singular(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return np.zeros_like(x)


def newton(x):
    y = x / 2
    while abs(y * y - x) > 1e-10:
        y = (y + x / y) / 2
    return y


def clip(x, low):
    if x.sum() > low:
        return x - low
    return x


def convergence(x):
    error = 1.0
    while error > 0.01:
        new = 0.5 * (x + x.mean())
        error = np.abs(new - x).max()
        x = new
    return x


def crc(data):
    value = 0xFFFF
    for byte in data:
        current = 0xFF & byte
        for _ in range(8):
            if (value & 1) ^ (current & 1):
                value = (value >> 1) ^ 0x8408
            else:
                value >>= 1
            current >>= 1
    return value


def asserting(x):
    assert x.sum() > 0, "no sum"
    return np.sqrt(x)


def raising(x):
    if x.ndim != 1:
        raise ValueError(f"{x.ndim} dimensions")
    return x[10]


def recurrence(a, b):
    for i in range(1, len(a)):
        a[i] = 0.5 * a[i - 1] + b[i]
    return a


def new_array(x, n):
    table = np.ndarray(n + 1, dtype=np.float64)
    table[0] = x[0]
    for i in range(n):
        table[i + 1] = table[i] * 2
    return table


def shrink(x, steps):
    for _ in range(steps):
        x = x[x > x.mean() / 2]
    return x


def formatted(x):
    return x, f"{x.shape}"


class Row:
    """A program, the arguments of its calls, and what it needs that is not there yet."""

    def __init__(self, make, *calls, needs=None, takes_function=True):
        self.make = (lambda: make) if takes_function else make
        self.calls, self.needs = calls, needs


def state(make, *calls, **options):
    return Row(make, *calls, takes_function=False, **options)


C, B = np.ones((2, 3)), np.arange(12.0).reshape(4, 3)
ROWS = {
    # written arguments
    "gemm": Row(gemm, *[(1.5, 1.2, C, np.arange(8.0).reshape(2, 4), B)] * 2),
    "jacobi": Row(jacobi, *[(4, np.arange(6.0), np.ones(6))] * 2),
    "x += 1": Row(augment, (X,), (X,), (X * 2,)),
    "x += 1 of ints": Row(augment, (np.arange(3),), (np.arange(3),)),
    "x += 1 of a strided array": Row(augment, (A[::2, ::-1],), (A.T,)),
    "x += 1 without elements": Row(augment, (X[:0],), (X[:0],)),
    "x += 1 without dimensions": Row(augment, (np.array(3.0),), (np.array(4.0),)),
    "x[0] = 9": Row(element, (X,), (X,)),
    "x[m] = 0": Row(masked, (X,), (X,)),
    "x[m] *= 2": Row(scaled_mask, (X,), (X,)),
    "x.sort()": Row(sort, (X[::-1].copy(),), (X[::-1].copy(),)),
    "x.fill(0)": Row(fill, (X,), (X,)),
    "out=x": Row(out, (X,), (X,)),
    "np.add.at": Row(add_at, *[(X, np.array([0, 0, 2]))] * 2),
    "view": Row(view, (X,), (X,)),
    "d['a'] += 1": Row(in_dict, ({"a": X},), ({"a": X},)),
    "d['b'] = v": Row(new_key, ({"a": X},), ({"a": X},)),
    "list.append": Row(append, ([], X), ([], X)),
    "dataclass": Row(dataclass, *[(Pair(X, X[:1] + 1), X * 2)] * 2),
    "data -= mean": Row(subtract_mean, (A,), (A,)),
    "cholesky": Row(cholesky, (A + A.T,), (A + A.T,)),
    "two arguments": Row(update_twice, (X, X * 2), (X, X * 2)),
    "recurrence": Row(recurrence, (X, X * 2), (X, X * 2)),
    # state outside
    "array of a closure, no arguments": state(make_accumulator, (), (), ()),
    "array of a closure": state(make_accumulator_of_arguments, (X,), (X,), (X,)),
    "element of a dict": state(make_rebinding, (X,), (X,), (X,)),
    "nonlocal": state(make_nonlocal, (X,), (X,), (X,)),
    "list.append outside": state(make_list, (X,), (X,), (X,)),
    "attribute": state(make_attribute, (X,), (X,), (X,)),
    "array written between calls": state(make_constant_written_between_calls, (X,), (X,), (X,)),
    "attribute bound between calls": state(make_attribute_rebound_between_calls, (X,), (X,), (X,), needs=REBOUND),
    # swallowed errors
    "float() in try": Row(swallow_float, (X,), (X,)),
    "condition in try": Row(swallow_condition, (X,), (X,)),
    "LinAlgError": Row(singular, (A,), (np.zeros((3, 3)),), needs=SINGULAR),
    # control flow
    "newton": Row(newton, (np.float64(2.0),), (np.float64(3.0),)),
    "newton on an array": Row(newton, (np.array(2.0),), (np.array(3.0),)),
    "if": Row(clip, (X, 3.0), (X, 30.0)),
    "while error > tolerance": Row(convergence, (X,), (X * 3,)),
    "crc": Row(crc, (np.arange(5, dtype=np.uint8),), (np.arange(5, 10, dtype=np.uint8),)),
    "assert": Row(asserting, (X,), (-X,), needs=ASSERT),
    "raise": Row(raising, (A,), (A,)),
    "index out of range": Row(raising, (X,), (X,)),
    "np.ndarray": Row(new_array, (X, 3), (X, 3), (X, 4)),
    "shrinking": Row(shrink, (X, 3), (X * 2, 3)),
    "f-string of a shape": Row(formatted, (X,), (X[:2],)),
    # numbers
    "long product": Row(lambda a, b: a * b, (3 * 10**9, 4 * 10**9), (3, 4), needs=NUMBERS),
    "power": Row(lambda n: 2**n, (10,), (100,), needs=NUMBERS),
    "negative power": Row(lambda n: 2**n, (-1,), (2,), needs=NUMBERS),
    "1 // 0": Row(lambda a: 1 // a, (2,), (0,)),
    "5 % 0": Row(lambda a: 5 % a, (2,), (0,)),
    "1.0 / 0.0": Row(lambda a: 1.0 / a, (2.0,), (0.0,)),
    "sum of ints": Row(lambda a, b: a + b, (3, 4), (5, 6)),
    # sizes, axes and shapes
    "x.sum(axis)": Row(lambda x, axis: x.sum(axis=axis), (A, 0), (A, 1)),
    "np.arange(n)": Row(lambda n: np.arange(n), (3,), (5,)),
    "x.reshape": Row(lambda x, shape: x.reshape(shape), (A, (9, 1)), (A, (1, 9))),
    "real eigenvalues": Row(lambda x: np.linalg.eigvals(x), (A,), (A,)),
    "function of real eigenvalues": Row(lambda x: np.sort(np.linalg.eigvals(x)), (A,), (A,), needs=SPECTRUM),
    "np.add.reduceat": Row(lambda x: np.add.reduceat(x, [0, 2]), (X,), (X,)),
    "np.size of a list": Row(lambda x: x * np.size([x, x], 0), (X,), (X,)),
}  # fmt: skip


def call(function, args):
    """Return a result or an exception's class, and the arguments afterwards."""
    args = copy.deepcopy(args)
    try:
        return function(*args), args
    except Exception as error:
        return type(error), args


def history(make, calls, decorate):
    """Return everything that can be seen of some calls."""
    plain = make()
    function, seen = decorate(plain), []
    for args in calls:
        seen.append((*call(function, args), copy.deepcopy(getattr(plain, "state", lambda: None)())))
        getattr(plain, "between", lambda: None)()
    return seen


def require_equal(got, expected, where):
    if isinstance(expected, type):
        assert isinstance(got, type), f"{where}: {got!r}, not an error"
        assert issubclass(got, expected), where
    elif dataclasses.is_dataclass(expected):
        require_equal(vars(got), vars(expected), where)
    elif isinstance(expected, dict):
        assert list(got) == list(expected), where
        for key, value in expected.items():
            require_equal(got[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, (tuple, list)):
        assert type(got) is type(expected), where
        assert len(got) == len(expected), where
        for k, value in enumerate(expected):
            require_equal(got[k], value, f"{where}[{k}]")
    elif expected is None or isinstance(expected, str):
        assert got == expected, where
    else:
        assert not isinstance(got, cyxla.TracedArray), where
        assert np.asarray(got).dtype == np.asarray(expected).dtype, where
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=where)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the plain function
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.xfail(reason=r.needs, strict=True)) if r.needs
                                  else n for n, r in ROWS.items()])  # fmt: skip
def test_programs(name):
    row = ROWS[name]
    expected = history(row.make, row.calls, lambda f: f)
    got = history(row.make, row.calls, cyxla.jit)
    for k, (one, other) in enumerate(zip(got, expected, strict=True)):
        for part, mine, plain in zip(("result", "arguments", "state"), one, other, strict=True):
            require_equal(mine, plain, f"call {k}: {part}")
