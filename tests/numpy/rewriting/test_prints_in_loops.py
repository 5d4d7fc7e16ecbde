"""Lines that loops print: each once, in the order of the iterations."""

import numpy as np
import pytest

import cyxla

X = np.concatenate([np.arange(40.0) + 1, [-1.0], np.ones(100)])


def counted(x, n):
    for i in range(n):
        print(i, x[i])


def until_break(x, n):
    for i in range(n):
        print(i)
        if x[i] < 0:
            break
    return i


def until_return(x, n):
    for i in range(n):
        print(i, x[i])
        if x[i] < 0:
            return i
    return -1


def with_continue(x, n):
    for i in range(n):
        if x[i] < 0:
            continue
        print(i)


def nested(x, n):
    for _ in range(3):
        for i in range(n):
            print("inner", i)
            if x[i] < 0:
                break
        print("outer")


def while_known(x, n):
    i = 0
    while i < n:
        print(i)
        i += 1
    return i


def while_traced(x, n):
    i = 0
    while x[i] > 0:
        print(i)
        i += 1
    return i


def in_the_condition(x, n):
    i = 0
    while print("test", i) is None and x[i] > 0:
        i += 1
    return i


def by_cyxla(x, n):
    for i in range(n):
        cyxla.print("value {}", x[i])
        if x[i] < 0:
            break


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize(
    "function",
    [
        counted, until_break, until_return, with_continue, nested, while_known, while_traced, in_the_condition,
        by_cyxla,
    ],
)  # fmt: skip
def test_lines_of_loops(function, backend, capsys):
    compiled = cyxla.jit(function, fallback="numpy", platform=backend)
    for _ in range(2):
        found, ours = compiled(X, 60), capsys.readouterr().out
        with cyxla.disable_jit():
            assert (found, ours) == (function(X, 60), capsys.readouterr().out)


def print_all(numbers):
    for k in numbers:
        print("number", k)
    return len(numbers)


def test_lines_of_lists_of_any_length(capsys):
    compiled = cyxla.jit(print_all)
    for numbers in ([1, 2], [4, 5, 6], [7], list(range(20))):
        found, ours = compiled(numbers), capsys.readouterr().out
        assert (found, ours) == (print_all(numbers), capsys.readouterr().out)
