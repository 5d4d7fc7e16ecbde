"""Products of which a leading part matters: the prebuilt kernel has the bits of the generated one, for every size."""

import numpy as np
import pytest

import cyxla

SIZES = (0, 1, 2, 7, 16, 33, 63, 64, 65, 100, 150)  # the last one is the bound

#: Sizes of the two operands, where n is the size at run time, and their contracted and batch dimensions.
PRODUCTS = {
    "rows": ("n,64", "64,48", 1, 0, ()),
    "rows, the last panel is cut": ("n,64", "64,21", 1, 0, ()),
    "rows of columns": ("64,n", "64,48", 0, 0, ()),
    "columns": ("40,64", "64,n", 1, 0, ()),
    "columns, packed": ("40,64", "n,64", 1, 1, ()),
    "rows and columns": ("n,64", "n,64", 1, 1, ()),
    "terms": ("40,n", "n,48", 1, 0, ()),
    "terms of columns": ("n,40", "n,48", 0, 0, ()),
    "rows and terms": ("n,n", "n,48", 1, 0, ()),
    "all": ("n,n", "n,n", 1, 0, ()),
    "batches": ("n,20,32", "n,32,24", 2, 1, (0,)),
    "rows of batches": ("6,n,32", "6,32,24", 2, 1, (0,)),
    "rows, deep": ("n,2100", "2100,48", 1, 0, ()),
    "rows and columns, deep": ("n,2100", "n,2100", 1, 1, ()),
}


def program(left: str, right: str, left_dim: int, right_dim: int, batch: tuple[int, ...], dtype: str) -> str:
    bounded = [", ".join(f"<={SIZES[-1]}" if d == "n" else d for d in dims.split(",")) for dims in (left, right)]
    attributes = f"lhs_contracting_dims={{{left_dim}}}, rhs_contracting_dims={{{right_dim}}}"
    if batch:
        attributes += ", lhs_batch_dims={0}, rhs_batch_dims={0}"
    free = [d for k, d in enumerate(bounded[0].split(", ")) if k != left_dim]
    free += [d for k, d in enumerate(bounded[1].split(", ")) if k != right_dim and k not in batch]
    shapes = [f"{dtype}[{dims.replace(' ', '')}]" for dims in (*bounded, ",".join(free))]
    return (
        f"HloModule m\nENTRY e {{ a = {shapes[0]} parameter(0) b = {shapes[1]} parameter(1) "
        f"ROOT r = {shapes[2]} dot(a, b), {attributes} }}"
    )


def operands(rng, left, right, dtype, n):
    for dims in (left, right):
        yield rng.standard_normal([n if d == "n" else int(d) for d in dims.split(",")]).astype(dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("left, right, left_dim, right_dim, batch", PRODUCTS.values(), ids=PRODUCTS)
def test_every_size(left, right, left_dim, right_dim, batch, dtype, monkeypatch):
    text = program(left, right, left_dim, right_dim, batch, dtype)
    prebuilt, oracle = cyxla.compile(text, cache=False), cyxla.compile(text, platform="interpreter")
    assert "dot_live" in prebuilt.c_source
    monkeypatch.setenv("CYXLA_PREBUILT", "0")
    generated = cyxla.compile(text, cache=False)
    assert "dot_live" not in generated.c_source
    rng = np.random.default_rng(0)
    for n in SIZES:
        arrays = [*operands(rng, left, right, dtype.replace("f32", "f4").replace("f64", "f8"), n)]
        got = prebuilt(*arrays)
        np.testing.assert_array_equal(got, generated(*arrays), err_msg=f"size {n}")
        np.testing.assert_allclose(got, oracle(*arrays), rtol=1e-4, atol=1e-3, err_msg=f"size {n}")


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_same_bits_for_any_number_of_threads(threads):
    text = program("n,300", "300,260", 1, 0, (), "f32").replace("<=150", "<=600")
    x, w = (np.random.default_rng(1).standard_normal(s, np.float32) for s in ((600, 300), (300, 260)))
    run, before = cyxla.compile(text), cyxla.threads()
    try:
        for n in (1, 100, 599):
            cyxla.threads(1)
            want = run(x[:n], w)
            cyxla.threads(threads)
            np.testing.assert_array_equal(run(x[:n], w), want)
    finally:
        cyxla.threads(before)
