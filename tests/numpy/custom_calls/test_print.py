"""`cyxla.print`: messages of every run, in the order of the program."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError

X = np.arange(3.0)


def doubled(i, v):
    cyxla.print("{} {}", i, v)
    return v * 2


def counted(v):
    cyxla.print("test {}", v)
    return v < 3


def summed(c, v):
    cyxla.print("{} + {}", c, v)
    return c + v, c


def printed(text):
    def function(*args):
        cyxla.print(text)
        return args[0]

    return function


# function of x, and what it prints for X
PROGRAMS = {
    "array": (lambda x: cyxla.print("x = {}", x), "x = [0. 1. 2.]\n"),
    "value alone": (lambda x: cyxla.print(x * 2), "[0. 2. 4.]\n"),
    "no value": (lambda x: cyxla.print("{{}} é\n"), "{} é\n\n"),
    "scalar with a specification": (lambda x: cyxla.print("{:.3f}|{:>6}", x.sum(), x[1]), "3.000|   1.0\n"),
    "named": (lambda x: cyxla.print("{a} {0} {b!r}", x[0], a=x, b=x.max()), "[0. 1. 2.] 0.0 np.float64(2.0)\n"),
    "attributes": (lambda x: cyxla.print("{0.shape} {0[1]}", x), "(3,) 1.0\n"),
    "dtypes": (
        lambda x: cyxla.print("{} {} {}", x > 0, x.astype(np.int8), x + 1j),
        "[False  True  True] [0 1 2] [0.+1.j 1.+1.j 2.+1.j]\n",
    ),
    "containers": (
        lambda x: cyxla.print("{}", {"a": (x, [1, None, "t"]), 2: x[0]}),
        "{'a': (array([0., 1., 2.]), [1, None, 't']), 2: np.float64(0.0)}\n",
    ),
    "other objects": (lambda x: cyxla.print("{} {}", np.dtype("f4"), slice(1)), "float32 slice(None, 1, None)\n"),
    "known values": (lambda x: cyxla.print("{} {}", np.arange(2), 7), "[0 1] 7\n"),
    "no elements": (lambda x: cyxla.print("{}", x[:0]), "[]\n"),
    "run-time size": (lambda x: cyxla.print("{}", x[x > 0]), "[1. 2.]\n"),
    "order": (lambda x: [cyxla.print("{}", k) for k in range(4)] and None, "0\n1\n2\n3\n"),
    "equal messages": (lambda x: [cyxla.print("a {}", x[0]) for _ in range(2)] and None, "a 0.0\na 0.0\n"),
    "loop": (
        lambda x: [cyxla.print("before"), cyxla.fori_loop(0, 2, doubled, x), cyxla.print("after")][1],
        "before\n0 [0. 1. 2.]\n1 [0. 2. 4.]\nafter\n",
    ),
    "loop without a result": (lambda x: [cyxla.fori_loop(0, 2, doubled, x), None][1], "0 [0. 1. 2.]\n1 [0. 2. 4.]\n"),
    "while": (lambda x: cyxla.while_loop(counted, lambda v: v + 1, x[1]), "test 1.0\ntest 2.0\ntest 3.0\n"),
    "scan": (lambda x: cyxla.scan(summed, 0.0, x), "0.0 + 0.0\n0.0 + 1.0\n1.0 + 2.0\n"),
    "branch": (lambda x: cyxla.cond(x.sum() > 2, printed("yes"), printed("no"), x), "yes\n"),
    "other branch": (lambda x: cyxla.cond(x.sum() < 2, printed("yes"), printed("no"), x), "no\n"),
    "function": (lambda x: cyxla.jit(printed("inner"))(x), "inner\n"),
    "gradient": (cyxla.grad(lambda x: doubled(0, x).sum()), "0 [0. 1. 2.]\n"),
    "gradient of a loop": (
        cyxla.grad(lambda x: cyxla.fori_loop(0, 2, doubled, x).sum()), "0 [0. 1. 2.]\n1 [0. 2. 4.]\n",
    ),
    "gradient of a branch": (
        cyxla.grad(lambda x: cyxla.cond(x.sum() > 2, printed("yes"), printed("no"), x).sum()), "yes\n",
    ),
    "gradient of a checkpoint": (
        cyxla.grad(lambda x: cyxla.checkpoint(lambda v: doubled(0, v * v))(x).sum()), 2 * "0 [0. 1. 4.]\n",
    ),
}  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_run_prints(capsys, backend, program):
    function, expected = PROGRAMS[program]
    jitted = cyxla.jit(function, platform=backend)
    jitted(X)
    assert capsys.readouterr().out == expected
    jitted.wait()
    jitted(X)
    assert capsys.readouterr().out == expected
    if backend == "interpreter" and "gradient" not in program and program != "run-time size":
        function(X)  # not traced
        assert capsys.readouterr().out == expected


REFUSED = {
    "too few values": (lambda x: cyxla.print("{} {}", x), IndexError, "more fields than the 1 values"),
    "unknown name": (lambda x: cyxla.print("{a}", x), KeyError, "a"),
    "specification": (lambda x: cyxla.print("{:.2f}", x), TypeError, "unsupported format string"),
    "code": (lambda x: cyxla.print("{:d}", x.sum()), ValueError, "Unknown format code 'd'"),
    "brace": (lambda x: cyxla.print("{", x), ValueError, "Single '{'"),
    "private": (lambda x: cyxla.print("{0.__class__}", x), InvalidArgumentError, "private attribute"),
    "no format": (lambda x: cyxla.print(x, x), InvalidArgumentError, "must be a format"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("traced", [True, False])
def test_formats_that_do_not_fit(case, traced):
    function, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        (cyxla.jit(function) if traced else function)(X)


def test_results_are_those_without_messages(capsys):
    def f(x):
        cyxla.print("{}", x)
        return np.sqrt(x) + 1

    np.testing.assert_array_equal(cyxla.jit(f)(X), np.sqrt(X) + 1)
    assert cyxla.jit(cyxla.grad(lambda x: f(x).sum()))(X + 1).shape == (3,)
    assert capsys.readouterr().out == "[0. 1. 2.]\n[1. 2. 3.]\n"


def test_executables_print_in_other_processes(tmp_path):
    executable = cyxla.compile(lambda x: cyxla.print("sum {:.1f}", x.sum()) or x, X)
    path = tmp_path / "executable"
    path.write_bytes(pickle.dumps(executable))
    code = f"import pickle, numpy as np; pickle.load(open({str(path)!r}, 'rb'))(np.arange(3.0))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "sum 3.0\n"


def test_programs_in_text_print(capsys):
    text = cyxla.jit(lambda x: cyxla.print('"{}" \\ {name}', x, name="é") or x).lower(X).to_text()
    cyxla.compile(text)(X)
    assert capsys.readouterr().out == '"[0. 1. 2.]" \\ é\n'


@pytest.mark.parametrize("config", ["", "{}", "[]", '{"format": 1, "values": [], "named": {}}',
                                    '{"format": "{}", "values": [{"array": null}], "named": {}}'])  # fmt: skip
def test_malformed_programs(config):
    from cyxla.types import Shape
    from cyxla.xla.hlo.builder import XlaBuilder
    from cyxla.xla.hlo.builder import functions as xla

    builder = XlaBuilder("f")
    xla.custom_call(builder, "cyxla_print", [], Shape.tuple([]), config, has_side_effect=True)
    with pytest.raises(InvalidArgumentError, match="does not describe a message"):
        cyxla.compile(builder.build(), platform="interpreter")()


def test_python_prints_in_each_run(capsys):
    f = cyxla.jit(lambda x: print(x, f"{x.sum():.3f}") or x)
    for _ in range(2):
        f(X)
        assert capsys.readouterr().out == "[0. 1. 2.] 3.000\n"


def test_values_of_branches_are_printed(capsys):
    def function(x):
        if x.sum() > 0:
            cyxla.print("{}", x.sum())
        return x

    f = cyxla.jit(function)
    for value, text in ((X, "3.0\n"), (-X, "")):
        f(value)
        assert capsys.readouterr().out == text
