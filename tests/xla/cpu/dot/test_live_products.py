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


#: Instructions behind a product d of some shape, whose last dimension has a number.
EPILOGUES = {
    "none": "ROOT r = {shape} copy(d)",
    "its function": "ROOT r = {shape} tanh(d)",
    "by position": "i = {shape} iota(), iota_dimension={last} j = {shape} multiply(i, d) ROOT r = {shape} add(j, d)",
    "two results": "t = {shape} tanh(d) n = {shape} negate(d) ROOT r = ({shape}, {shape}) tuple(t, n)",
    "of another type": "h = {half} convert(d) ROOT r = {half} abs(h)",
}


def program(
    left: str, right: str, left_dim: int, right_dim: int, batch: tuple[int, ...], dtype: str, epilogue: str = "none"
) -> str:
    bounded = [", ".join(f"<={SIZES[-1]}" if d == "n" else d for d in dims.split(",")) for dims in (left, right)]
    attributes = f"lhs_contracting_dims={{{left_dim}}}, rhs_contracting_dims={{{right_dim}}}"
    if batch:
        attributes += ", lhs_batch_dims={0}, rhs_batch_dims={0}"
    free = [d for k, d in enumerate(bounded[0].split(", ")) if k != left_dim]
    free += [d for k, d in enumerate(bounded[1].split(", ")) if k != right_dim and k not in batch]
    shapes = [f"{dtype}[{dims.replace(' ', '')}]" for dims in (*bounded, ",".join(free))]
    behind = EPILOGUES[epilogue].format(
        shape=shapes[2], last=len(free) - 1, half=shapes[2].replace(dtype, "f16" if dtype == "f32" else "f32")
    )
    return (
        f"HloModule m\nENTRY e {{ a = {shapes[0]} parameter(0) b = {shapes[1]} parameter(1) "
        f"d = {shapes[2]} dot(a, b), {attributes} {behind} }}"
    )


def operands(rng, left, right, dtype, n):
    for dims in (left, right):
        yield rng.standard_normal([n if d == "n" else int(d) for d in dims.split(",")]).astype(dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("left, right, left_dim, right_dim, batch", PRODUCTS.values(), ids=PRODUCTS)
def test_every_size(left, right, left_dim, right_dim, batch, epilogue, dtype, monkeypatch):
    text = program(left, right, left_dim, right_dim, batch, dtype, epilogue)
    is_linked = "2100" in left and epilogue != "none"  # the epilogue takes the sums of several blocks of terms
    prebuilt, oracle = cyxla.compile(text, cache=False), cyxla.compile(text, platform="interpreter")
    assert ("dot_live" in prebuilt.c_source) is not is_linked
    monkeypatch.setenv("CYXLA_PREBUILT", "0")
    generated = cyxla.compile(text, cache=False)
    assert "dot_live" not in generated.c_source
    tolerance = {"of another type": 2e-3, "by position": 1e-3}.get(epilogue, 1e-4)  # positions scale the error
    rng = np.random.default_rng(0)
    for n in SIZES:
        arrays = [*operands(rng, left, right, dtype.replace("f32", "f4").replace("f64", "f8"), n)]
        results = [run(*arrays) for run in (prebuilt, generated, oracle)]
        for got, same, want in zip(*(r if type(r) is tuple else (r,) for r in results), strict=True):
            np.testing.assert_array_equal(got, same, err_msg=f"size {n}")
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance, err_msg=f"size {n}")


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
