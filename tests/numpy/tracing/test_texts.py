"""Texts of traced values: printed in each run, messages of exceptions, or a reason to run the plain function."""

import contextlib
import io
import warnings

import numpy as np
import pytest

import cyxla

X = np.array([1.0, 2.5, 4.0])


def print_lines(x):
    print("hello {}")
    print("x", x, x.sum(), 3, [x[0], None], {"a": x[1] > 2}, sep="|")
    print(
        f"{x.max():.3f} {x[0]!r:>20}",
        "%.2f%%" % x[1],  # noqa: UP031
        "{:>8.1f} {}".format(x[0], "text"),
        end="",
    )
    print()
    return x


def print_numbers(n, x):
    print(n, n > 2, x, x / 3, (n, x), f"{n:04d} {x:.2e}")


def print_in_loop(x):
    for i in range(30):
        x = x * 0.5
        if i % 10 == 0:
            print("step", i, x[0])
    return x


def print_in_branch(x):
    if x.sum() > 0:
        print("positive", x.sum())
    else:
        print("negative")
    return x


def fail(x):
    if x.sum() > 0:
        raise ValueError(f"the sum is {x.sum()}, " + str(x[0]) + " is first")
    return x


def warn(x):
    if x.sum() > 0:
        warnings.warn(f"the sum is {x.sum()}", stacklevel=1)
    return x


PROGRAMS = {
    "print": (print_lines, X), "numbers": (print_numbers, 3, 2.5), "loop": (print_in_loop, X),
    "branch": (print_in_branch, X), "other branch": (print_in_branch, -X), "exception": (fail, X),
    "no exception": (fail, -X), "warning": (warn, X), "no warning": (warn, -X),
}  # fmt: skip
#: Functions whose results are made of texts; of a number, which becomes static, or of arrays, which do not.
TEXTS = {
    "str": (lambda n: str(n), 12), "f-string": (lambda x: f"{x.sum():.2f} {x[0]!r}", X),
    "width": (lambda n: f"n={n:>{n + 1}}|", 3), "percent": (lambda x: "%.3f %s" % (x[0], x[1]), X),  # noqa: UP031
    "format": (lambda x: f"{x[0]:.1f} and {x.sum()}", X), "sum of texts": (lambda n: "a" + str(n) + "b", 3),
    "join": (lambda x: " ".join(str(v) for v in x) + ",".join(map(str, x)), X),
    "digits": (lambda n: sum(int(c) for c in str(n)), 4711), "palindrome": (lambda n: str(n) == str(n)[::-1], 12321),
    "sorted": (lambda a, b: sorted(str(a)) == sorted(str(b)), 123, 12), "list": (lambda x: str([x[0], 2]), X),
    "find": (lambda n: ["T 2: 2".find(f"T {n}"), "T 2: 2".rfind(str(n))], 2),
    "count": (lambda n: "22".count(str(n)), 2),
    "start": (lambda n: ["2:".startswith(str(n)), "2:".startswith(("a", str(n)))], 2),
    "split": (lambda n: ["a2b".split(str(n)), "a2b".partition(str(n)), "a2b".rsplit(str(n), 1)], 2),
    "parts": (lambda n: ["a2b".replace(str(n), "x"), "2a".strip(str(n)), "2a".removeprefix(str(n))], 2),
    "contained": (lambda n: [str(n) in "a2b", f"{n}!" not in "2!"], 2), "bytes": (lambda n: bytes(str(n), "ascii"), 2),
    "method of the class": (lambda n: str.find("a2b", str(n)), 2),
    "key": (lambda n: {f"k{n}": n}, 2), "repr": (lambda x: repr(x), X),
}  # fmt: skip


def outcome(function, args):
    """Return the output, the result or exception, and the user's warnings."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", cyxla.errors.FallbackWarning)
        try:
            result = repr(function(*args))
        except Exception as error:
            result = type(error), str(error)
    return output.getvalue(), result, [str(w.message) for w in caught]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_run_does_what_the_plain_function_does(name, backend):
    function, *args = PROGRAMS[name]
    f = cyxla.jit(function, platform=backend, fallback="numpy")
    want = outcome(function, args)
    for _ in range(3):
        assert outcome(f, args) == want
    assert "cannot be compiled" not in f.explain()


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    function, *args = TEXTS[name]
    f = cyxla.jit(function, platform="interpreter", fallback="numpy")
    for _ in range(2):
        assert outcome(f, args) == outcome(function, args)


def test_text_of_an_array_is_refused_at_its_line():
    def label(x):
        text = f"{x.sum()}"
        return {text: x}

    line = label.__code__.co_firstlineno + 1
    with pytest.raises(cyxla.errors.TraceError, match=rf"converted to a text(.|\n)*test_texts\.py:{line}"):
        cyxla.jit(label, platform="interpreter")(X)
