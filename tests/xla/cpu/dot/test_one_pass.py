"""Products of one large matrix with several vectors are one kernel, with the bits of products alone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.hlo.differential import agree, flat

import cyxla
from cyxla.xla.cpu.dot import one_pass

#: name: lines of the program, and the kinds of its kernels; m is a matrix, x and z fit its rows, y and w its columns.
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "siblings": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        b = T[C] dot(y, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT r = (T[R], T[C]) tuple(a, b)""", ["products"]),
    "siblings, the other way round": ("""
        b = T[C] dot(m, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        a = T[R] dot(x, m), lhs_contracting_dims={0}, rhs_contracting_dims={1}
        ROOT r = (T[C], T[R]) tuple(b, a)""", ["products"]),
    "epilogues": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        a1 = T[R] add(a, y)
        a2 = T[R] multiply(a1, w)
        b = T[C] dot(y, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        b1 = T[C] subtract(z, b)
        ROOT r = (T[R], T[R], T[C]) tuple(a1, a2, b1)""", ["products"]),
    "one epilogue": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        b = T[C] dot(y, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        b1 = T[C] subtract(z, b)
        ROOT r = (T[R], T[C]) tuple(a, b1)""", ["products"]),
    "a chain": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT b = T[C] dot(a, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}""", ["products"]),
    "a chain of matrices": ("""
        c = T[C,1] reshape(x)
        a = T[R,1] dot(m, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        t = T[C,R] transpose(m), dimensions={1,0}
        ROOT b = T[C,1] dot(t, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}""", ["products"]),
    "a chain of residuals": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        a1 = T[R] subtract(y, a)
        b = T[C] dot(a1, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        b1 = T[C] add(x, b)
        ROOT r = (T[R], T[C]) tuple(a1, b1)""", ["products"]),
    "a scale in between": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        n = T[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        e = T[R] broadcast(n), dimensions={}
        a1 = T[R] divide(a, e)
        ROOT b = T[C] dot(a1, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}""", ["dot", "dot", "loop", "dot"]),
    "inner products": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        b = T[R] dot(m, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = (T[R], T[R]) tuple(a, b)""", ["products"]),
    "sums": ("""
        a = T[C] dot(y, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        b = T[C] dot(w, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT r = (T[C], T[C]) tuple(a, b)""", ["products"]),
    "three products": ("""
        a = T[C] dot(y, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        b = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        c = T[R] dot(m, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = (T[C], T[R], T[R]) tuple(a, b, c)""", ["products"]),
    "two chains": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        b = T[C] dot(a, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        c = T[R] dot(m, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        d = T[C] dot(c, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT r = (T[C], T[C]) tuple(b, d)""", ["products"]),
    "the product of a product of a product": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        b = T[C] dot(a, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT c = T[R] dot(m, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""", ["products", "dot"]),
    "a vector that is computed later": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        s = T[R] sort(y), dimensions={0}, to_apply=less
        b = T[C] dot(s, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT r = (T[R], T[C]) tuple(a, b)""", ["sort", "products"]),
    "a vector that is sorted in between": ("""
        a = T[R] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        s = T[R] sort(a), dimensions={0}, to_apply=less
        ROOT b = T[C] dot(s, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}""", ["dot", "sort", "dot"]),
}  # fmt: skip

#: name: type, rows and columns of a matrix, and its layout
MATRICES: dict[str, tuple[str, int, int, str]] = {
    "f64": ("f64", 1301, 1031, "{1,0}"),
    "f32": ("f32", 2704, 1003, "{1,0}"),
    "columns": ("f64", 1031, 1301, "{0,1}"),
    "long rows": ("f32", 406, 6601, "{1,0}"),
    "short rows": ("f64", 20011, 77, "{1,0}"),
}


def program(name: str, matrix: str) -> str:
    return sized(name, *MATRICES[matrix])


def sized(name: str, dtype: str, rows: int, columns: int, layout: str = "{1,0}") -> str:
    text = f"""
      less {{
        p = T[] parameter(0)
        q = T[] parameter(1)
        ROOT c = pred[] compare(p, q), direction=LT
      }}
      ENTRY e {{
        m = T[R,C]{layout} parameter(0)
        x = T[C] parameter(1)
        y = T[R] parameter(2)
        z = T[C] parameter(3)
        w = T[R] parameter(4){PROGRAMS[name][0]}
      }}"""
    sizes = {"R": str(rows), "C": str(columns)}
    return re.sub(r"(?<=[\[,])[RC](?=[,\]])", lambda m: sizes[m[0]], text.replace("T[", f"{dtype}["))


def vectors(text: str) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(3)
    shapes = [p.shape for p in cyxla.hlo.parse_module(text).parameters]
    return [random.standard_normal(s.dims).astype(s.dtype.numpy_dtype) for s in shapes]


def bits(results: Any) -> bytes:
    return b"".join(np.ascontiguousarray(r).tobytes() for r in flat(results))


def kinds(executable: cyxla.Executable) -> list[str]:
    return [kernel.kind for kernel in executable.explanation().kernels]


#: name: type and sizes of a matrix, and the kind of the kernels of its products
SIZES: dict[str, tuple[str, int, int, str]] = {
    "in the caches": ("f64", 700, 700, "dot"),
    "few rows in parts": ("f64", 370, 8000, "dot"),
    "just enough rows": ("f64", 390, 8000, "products"),
    "rows that fill L2 eight at a time": ("f64", 900, 16384, "products"),
    "longer rows": ("f64", 900, 16392, "dot"),
    "short rows in tiles": ("f32", 30000, 128, "dot"),
    "integers": ("s32", 3000, 3000, "dot"),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    dtype, rows, columns, kind = SIZES[name]
    assert set(kinds(cyxla.compile(sized("siblings", dtype, rows, columns)))) == {kind}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """The kernels are those that are listed, and agree with the interpreter."""
    text = program(name, "f64")
    assert sorted(kinds(agree(text, *vectors(text), ulp=1 << 12, floor=4.0))) == sorted(PROGRAMS[name][1])


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("name", ["siblings", "epilogues", "a chain of residuals", "two chains"])
def test_bits(name: str, matrix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the pass nor the number of threads nor prebuilt functions change a bit."""
    text = program(name, matrix)
    given, before = vectors(text), cyxla.threads()
    together = agree(text, *given, ulp=1 << 12, floor=4.0)
    assert kinds(together) == ["products"]
    seen = set()
    try:
        for count in (1, 2, 3):
            cyxla.threads(count)
            seen.add(bits(together(*given)))
    finally:
        cyxla.threads(before)
    monkeypatch.setenv("CYXLA_PREBUILT", "0")
    seen.add(bits(cyxla.compile(text, cache=False)(*given)))
    monkeypatch.setattr(one_pass, "MAX_BLOCK_BYTES", 0)
    apart = cyxla.compile(text, cache=False)
    assert "products" not in kinds(apart)
    seen.add(bits(apart(*given)))
    monkeypatch.delenv("CYXLA_PREBUILT")
    seen.add(bits(cyxla.compile(text, cache=False)(*given)))
    assert len(seen) == 1


def test_results_that_weight_rows_and_are_added() -> None:
    """Sums of all parts are there when an epilogue reads the inner products of all rows."""
    text = """ENTRY e {
      m = f64[1153,1153] parameter(0)
      x = f64[1153] parameter(1)
      a = f64[1153] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      b = f64[1153] dot(a, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      c = f64[1153] subtract(b, a)
      s = f64[1153] sine(c)
      ROOT r = (f64[1153], f64[1153]) tuple(a, s)
    }"""
    m, x = vectors(text)
    assert kinds(agree(text, m, x / 100, ulp=1 << 14, floor=4.0)) == ["products"]


def test_products_of_products_are_apart() -> None:
    text = """ENTRY e {
      m = f64[1153,1153] parameter(0)
      x = f64[1153] parameter(1)
      a = f64[1153] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT b = f64[1153] dot(m, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    assert kinds(agree(text, *vectors(text), ulp=1 << 12, floor=4.0)) == ["dot"]


def test_written_arguments() -> None:
    """Vectors that are changed in place, of which one is the weights of the other product."""

    def change(x: Any, y: Any, m: Any) -> None:
        x += m @ y
        y += x @ m

    def exchange(x: Any, y: Any, m: Any) -> None:
        old = x.copy()
        x += m @ y
        y -= old @ m

    random = np.random.default_rng(4)
    m = random.standard_normal((1200, 1100)) / 30
    for function in (change, exchange):
        x, y = random.standard_normal(1200), random.standard_normal(1100)
        want_x, want_y = x.copy(), y.copy()
        function(want_x, want_y, m)
        cyxla.jit(function, fallback="error")(x, y, m)
        np.testing.assert_allclose(x, want_x, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(y, want_y, rtol=1e-11, atol=1e-11)


def test_loops() -> None:
    """Power iterations on a matrix times its transpose read it once in each."""

    @cyxla.jit(fallback="error")
    def iterate(m: Any, x: Any, n: int) -> Any:
        for _ in range(n):
            x = (m @ x) @ m
        return x

    random = np.random.default_rng(5)
    m, x = random.standard_normal((1200, 1100)) / 50, random.standard_normal(1100)
    want = x
    for _ in range(5):
        want = (m @ want) @ m
    np.testing.assert_allclose(iterate(m, x, 5), want, rtol=1e-10, atol=1e-10)
