"""Tracebacks of errors in traced functions: short, with the user's lines only, and the cause last."""

import linecache
import os
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest

import cyxla
from cyxla.errors import InternalError, TraceError
from cyxla.numpy.tracing.user_program.user_frames import trim_traceback

HEAD = "import numpy as np, cyxla\njit = cyxla.jit(platform='interpreter')\n"

SCRIPTS = {
    "shapes": (
        """
        def layer(x, w):
            return np.tanh(x @ w)
        @jit
        def loss(x, w):
            return layer(x, w).sum()
        loss(np.ones((4, 8)), np.ones((7, 3)))
        """,
        ["return np.tanh(x @ w)", "return layer(x, w).sum()", "loss(np.ones"], "ShapeError",
    ),
    "branch": (
        """
        @jit
        def run(x):
            y = x * 2
            if y > 0:
                return y
            return np.zeros(3)
        run(np.array(3.0))
        """,
        ["return y", "leaves the result as float64[] or as float64[3]", "script.py:7"], "TraceError",
    ),
    "argument": (
        """
        @jit
        def run(x, n):
            return [x for _ in range(n)]
        run(3.0, np.array(2.0))
        """,
        ["for _ in range(n)]", "cannot be interpreted as an integer"], "TypeError",
    ),
    "index": (
        """
        @jit
        def pick(x, i):
            y = x + 1
            return y[i]
        pick(np.ones(3), 0)
        pick(np.ones(3), 7)
        """,
        ["pick(np.ones(3), 7)", "index 7", "script.py:6"], "OutOfRangeError",
    ),
    "own error": (
        """
        class Mine(Exception): pass
        def check(x):
            if x.ndim != 2:
                raise Mine("two dimensions")
        @jit
        def run(x):
            check(x)
        run(np.ones(3))
        """,
        ["check(x)", "two dimensions"], "Mine",
    ),
    "converted to an int": (
        """
        @jit
        def run(x):
            return round(x[0], 1) + int(x)
        run(np.ones(3))
        """,
        ["round(x[0], 1) + int(x)", "cannot be converted to an int", "x.astype(int)"], "TraceError",
    ),
    "unsupported argument": ("jit(lambda x: x)({1})", ["argument x is a set"], "DTypeError"),
    "inside of another": (
        """
        @jit
        def inner(x):
            return np.reshape(x, 7)
        @jit
        def outer(x):
            return inner(x)
        outer(np.ones(3))
        """,
        ["return np.reshape(x, 7)", "return inner(x)", "outer(np.ones(3))"], "Error",
    ),
    "lower": (
        """
        def run(x):
            return x @ x
        cyxla.compile(run, ((2, 3), "f4"), platform="interpreter")
        """,
        ["return x @ x"], "ShapeError",
    ),
    "a value kept": (
        """
        kept = []
        keep = kept.append.__call__
        jit(lambda x: keep(x * 2))(np.ones(3))
        total = np.sin(kept[0]).sum()
        """,
        ["np.sin(kept[0])", "has ended"], "TraceError",
    ),
    "a value kept, an operator": (
        """
        kept = []
        keep = kept.append.__call__
        jit(lambda x: keep(x * 2))(np.ones(3))
        total = 1 + kept[0]
        """,
        ["1 + kept[0]", "has ended"], "TraceError",
    ),
    "a value kept, a method": (
        """
        kept = []
        keep = kept.append.__call__
        jit(lambda x: keep(x * 2))(np.ones(3))
        total = kept[0].sum(axis=0)
        """,
        ["kept[0].sum(axis=0)", "has ended"], "TraceError",
    ),
    "a value kept, an index": (
        """
        kept = []
        keep = kept.append.__call__
        jit(lambda x: keep(x * 2))(np.ones(3))
        kept[0][1:] = 3
        """,
        ["kept[0][1:] = 3", "has ended"], "TraceError",
    ),
    "a list that is not traced": (
        """
        @jit
        def run(i):
            table = [1, 2, None]
            return table[i.sum()]
        run(np.array([1, 1]))
        """,
        ["return table[i.sum()]", "np.take(table, i)", "np.asarray(table)[i]"], "TraceError",
    ),
    "a dict that is not traced": ("jit(lambda i: {1: 2}[i[0]])(np.array([1]))", ["index a NumPy array or container"],
                            "TraceError"),
    "choices of None": ("jit(lambda m: np.where(m, None, None))(np.array([True]))", ["dtype object cannot be traced"],
                        "DTypeError"),
    "written outside and passed": (
        """
        table = np.zeros(4)
        @jit
        def run(x):
            table[0] = x[1] + 1
            return x * 2
        run(table)
        """,
        ["run(table)", "run writes to arrays that share memory", "pass a copy of one of them"], "InvalidArgumentError",
    ),
    "a global of another shape": (
        """
        table = np.zeros(4)
        @jit
        def run(x):
            global table
            table += x
        run(np.ones(3))
        """,
        ["table += x", "(4,) (3,)"], "ShapeError",
    ),
    "a set": ("jit(lambda i: {i, 1})(1.5)", ["argument i", "be hashed"], "TraceError"),
    "another library": (
        """
        import scipy.ndimage
        @jit
        def run(x):
            return scipy.ndimage.gaussian_filter(x, 1)
        run(np.ones((4, 4)))
        """,
        ["return scipy.ndimage.gaussian_filter(x, 1)", "cannot be converted to a NumPy array"], "TraceError",
    ),
    "by and by": ("jit(lambda x: x[5]).call_async(np.ones(3)).result()", ["index 5 is out of bounds"], "OutOfRange"),
    "an option": ("jit(lambda x: x, statics=0)", ["did you mean static?"], "InvalidArgumentError"),
    "no function": ("jit(3)", ["jit takes a function, got int"], "DTypeError"),
    "a gradient": (
        """
        cyxla.grad(lambda x: x.sum())(np.arange(3))
        """,
        ["np.arange(3)", "int64, which is not differentiable"], "DTypeError",
    ),
    "a kernel": (
        """
        cyxla.ckernel("errors.bad", "o[0] = 1;", args="x:f64[n", out="o:f64[n]")
        """,
        ["expected a declaration at"], "InvalidArgumentError",
    ),
}  # fmt: skip


#: Scripts without an error, by what they do; each leaves `found`, with and without `jit`.
WORKING = {
    "branch": """
        @jit
        def run(x):
            y = x * 2
            if y > 0:
                return y
            return -y + 1
        found = [run(np.array(3.0)), run(np.array(-3.0)), run(np.array(np.nan))]
        """,
    "a range of a number": """
        @jit
        def run(x, n):
            return [x for _ in range(n)]
        found = [run(3.0, np.int64(2)), run(3.0, np.array(3))]
        """,
    "a table from outside": """
        table = np.arange(4)
        @jit
        def run(i):
            return table[i + 1]
        found = [run(2), run(np.array([0, 1])), run(-5)]
        table[3] = 7
        found.append(run(2))
        """,
    "written outside": """
        table = np.zeros(4)
        @jit
        def run(x):
            table[0] = x
            table[1] += x
        found = [run(2.0), table.copy(), run(3.0), table.copy()]
        """,
    "a global added to": """
        table = before = np.zeros(4)
        @jit
        def run(x):
            global table
            table += x
        found = [run(2.0), table.copy(), run(3.0), table.copy(), table is before]
        """,
}


@pytest.mark.parametrize("name", WORKING)
def test_programs_without_errors(name, monkeypatch):
    compiled, plain = {}, {}
    for scope, head in ((compiled, HEAD), (plain, "import numpy as np\njit = lambda function: function\n")):
        exec_script(head + textwrap.dedent(WORKING[name]).lstrip("\n"), scope, monkeypatch)
    for got, want in zip(compiled["found"], plain["found"], strict=True):
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)


def exec_script(text, scope, monkeypatch):
    """Run a script whose source can be read."""
    monkeypatch.setitem(linecache.cache, "script.py", (len(text), None, text.splitlines(True), "script.py"))
    exec(compile(text, "script.py", "exec"), scope)


def run_script(script, tmp_path, **environment):
    """Return the text that a failing script prints."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + textwrap.dedent(script).lstrip("\n"))
    environment = {
        **environment, "PATH": "", "HOME": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "CYXLA_FALLBACK": "error",
    }  # fmt: skip
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
    assert run.returncode == 1, run
    return run.stderr.replace(f"{tmp_path}/", "")


def run_script_in_process(script, monkeypatch):
    """Return the same text without a process of its own."""
    monkeypatch.setenv("CYXLA_TRACEBACK", "short")
    text = HEAD + textwrap.dedent(script).lstrip("\n")
    try:
        exec_script(text, {"__name__": "__main__"}, monkeypatch)
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next.tb_next
        return "".join(traceback.format_exception(error))
    raise AssertionError("nothing is wrong")


@pytest.mark.parametrize("name", SCRIPTS)
def test_short_tracebacks(name, monkeypatch):
    script, lines, kind = SCRIPTS[name]
    text = run_script_in_process(script, monkeypatch)
    assert kind in text
    for line in lines:
        assert line in text, text
    assert len(text.splitlines()) <= 15, text
    assert len(text) <= 900, text
    assert "cyxla/numpy" not in text, text
    assert "concurrent" not in text, text


def test_short_tracebacks_in_a_process(tmp_path):
    script, lines, kind = SCRIPTS["index"]
    text = run_script(script, tmp_path)
    assert kind in text
    assert all(line in text for line in lines), text
    assert "cyxla/" not in text, text


def test_full_tracebacks(tmp_path):
    assert "cyxla/numpy" in run_script(SCRIPTS["branch"][0], tmp_path, CYXLA_TRACEBACK="full")


def _error_with_internal_frames(error):
    """Return an error whose traceback has frames of this package."""
    try:
        cyxla.jit(lambda x: _throw(error), platform="interpreter")(1.0)
    except BaseException as caught:
        return caught


def _throw(error):
    raise error


def test_user_errors_have_no_internal_frames(monkeypatch):
    monkeypatch.setenv("CYXLA_TRACEBACK", "short")
    error = _error_with_internal_frames(KeyError("mine"))
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert names == ["_error_with_internal_frames", "<lambda>", "_throw"]


def test_causes_of_user_errors_are_kept(monkeypatch):
    monkeypatch.setenv("CYXLA_TRACEBACK", "short")
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")
    assert isinstance(_error_with_internal_frames(error).__cause__, KeyError)


def test_internal_errors_keep_all_frames(monkeypatch):
    monkeypatch.setenv("CYXLA_TRACEBACK", "short")
    code = compile("def broken():\n    raise AttributeError('oops')\n", trim_traceback.__code__.co_filename, "exec")
    scope = {}
    exec(code, scope)
    with pytest.raises(AttributeError) as found:
        scope["broken"]()
    assert trim_traceback(found.value) is found.value.__traceback__


def test_failed_compilation_is_retried():
    tries = []
    record = tries.append.__call__
    count = tries.__len__

    @cyxla.jit(platform="interpreter")
    def run(x):
        record(1)
        if count() < 3:
            raise InternalError("not yet")
        return x

    for _ in range(2):
        with pytest.raises(InternalError):
            run(1.0)
    assert run(1.0) == 1


RESULTS = {
    "object": object(),
    "set": {1},
    "nested": {"k": [1, {2}]},
    "generator": (k for k in range(3)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_that_are_not_arrays(name):
    with pytest.raises(TraceError, match=r"result(\['k'\]\[1\])? of run is a \w+, which is not an array|from outside"):
        cyxla.jit(lambda x: RESULTS[name], platform="interpreter", name="run")(1.0)


def test_hints_for_functions_whose_dtype_depends_on_values():
    with pytest.raises(cyxla.errors.UnimplementedError, match=r"(?s)scimath.log cannot be traced\n.*astype\(complex\)"):
        cyxla.jit(lambda x: np.emath.log(x), platform="interpreter")(np.ones(3))


def test_shapes_in_messages():
    for function, text in (
        (lambda x: x + np.ones(3), r"add: .*with shapes \(2,\) \(3,\)"),
        (lambda x: x @ np.ones((3, 2)), r"matmul: .*\(size 3 is different from 2\)"),
    ):
        with pytest.raises(cyxla.errors.ShapeError, match=text):
            cyxla.jit(function, platform="interpreter")(np.ones(2))


def test_traced_values_that_escape():
    kept = []
    keep = kept.append.__call__
    cyxla.jit(lambda x: keep(x * 2), platform="interpreter")(1.0)
    for use in (lambda: kept[0] + 1, lambda: cyxla.jit(lambda y: y)(kept[0]), lambda: np.sin(kept[0]),
                lambda: cyxla.jit(lambda y: y + kept[0], platform="interpreter")(1.0)):  # fmt: skip
        with pytest.raises(TraceError, match="ended"):
            use()


@pytest.mark.parametrize("bounds, want", [("raise", None), ("clamp", 2.0)])
def test_bounds(bounds, want, backend):
    f = cyxla.jit(lambda x, i: x[i], bounds=bounds, platform=backend)
    x = np.arange(3.0)
    assert f(x, 1) == 1
    if want is None:
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
            f(x, 5)
        assert f(x, 2) == 2
    else:
        assert f(x, 5) == want
