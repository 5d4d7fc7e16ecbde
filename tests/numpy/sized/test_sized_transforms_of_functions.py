"""Gradients, Jacobians, maps and scans of arrays of run-time size, compared with those of arrays of known size."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError, UnimplementedError

ROWS = 6
SELECTIONS = {
    "none": np.zeros(ROWS, bool), "one": np.arange(ROWS) == 2, "some": np.arange(ROWS) % 3 != 1,
    "all": np.ones(ROWS, bool),
}  # fmt: skip


def squares(y):
    return (y * y).sum()


def loss(w, y):
    return (np.tanh(y @ w) ** 2).sum()


def halves(v):
    while v > 1:
        v = v / 2
    return v


def logarithms(y):
    return np.log(y - y.min() + 1).sum() + np.sqrt(np.abs(y)).sum()


def running(c, r):
    return c * 0.5 + np.tanh(r), (c * r).sum()


# -- functions of y of shape (n, 3), of which n is known at run time, and w of shape (3,)

GRADIENTS = {
    "first argument": lambda y, w: cyxla.grad(loss)(w, y),
    "sized argument": lambda y, w: cyxla.grad(loss, argnums=1)(w, y),
    "both": lambda y, w: cyxla.grad(loss, argnums=(0, 1))(w, y),
    "by name": lambda y, w: cyxla.grad(loss, argnums="y")(w, y=y),
    "closure": lambda y, w: cyxla.grad(lambda v: loss(v, y))(w),
    "column": lambda y, w: cyxla.grad(squares)(y[:, 0]),
    "transposed": lambda y, w: cyxla.grad(lambda z: np.tanh(w @ z).sum())(y.T),
    "selected again": lambda y, w: cyxla.grad(squares)(y[y > 0]),
    "two dimensions": lambda y, w: cyxla.grad(lambda z: np.sin(z).sum())(y @ y.T),
    "value": lambda y, w: cyxla.value_and_grad(loss, argnums=1)(w, y),
    "auxiliary": lambda y, w: cyxla.grad(lambda z: (squares(z), {"z": z + 1, "n": z.shape[0]}), has_aux=True)(y),
    "container": lambda y, w: cyxla.grad(lambda p: (p["y"][0] @ p["w"]).sum())({"y": (y,), "w": w}),
    "branch points": lambda y, w: cyxla.grad(lambda z: np.sqrt(z * z + 1).sum() + (1 / (z - 7)).sum())(y),
    "matrix product": lambda y, w: cyxla.grad(lambda z: (z.T @ z).sum() + np.linalg.norm(z))(y + 0.1),
    "sorted": lambda y, w: cyxla.grad(lambda z: (np.sort(z, 0) * np.cumsum(z, 0)).sum())(y),
    "first elements": lambda y, w: cyxla.grad(lambda z: squares(z[1:]) + squares(z[::-1][:2]))(y),
    "second": lambda y, w: cyxla.grad(lambda z: squares(cyxla.grad(lambda u: (u**3).sum())(z)))(y),
    "shared size": lambda y, w: cyxla.grad(lambda z: (z * y).sum() + (z[:, 0] @ y[:, 1]))(y),
    "pullback": lambda y, w: cyxla.vjp(lambda z: np.sin(z) @ w, y)[1](y[:, 0]),
    "direction": lambda y, w: cyxla.jvp(lambda z: np.sin(z) @ w, (y,), (y * 2,)),
    "integers": lambda y, w: cyxla.grad(lambda z: (z * w).sum(), allow_int=True)(y.astype(int)),
    "jacobian": lambda y, w: cyxla.jacobian(lambda z: np.stack([z.sum(), (z**2).sum()]))(y),
    "jacobian of a number": lambda y, w: cyxla.jacobian(squares)(y),
    "jacobian of a matrix": lambda y, w: cyxla.jacobian(lambda v: np.outer(v, v) * y.sum())(w),
    "jacobian of a vector": lambda y, w: cyxla.jacobian(lambda v: np.tanh(y @ v))(w),
    "jacobian by itself": lambda y, w: cyxla.jacobian(lambda z: z * z[::-1])(y[:, 0]),
    "hessian": lambda y, w: cyxla.hessian(lambda z: (z**3).sum() * z.sum())(y[:, 0]),
}  # fmt: skip
MAPS = {
    "rows": lambda y, w: cyxla.vmap(lambda r: r @ w)(y),
    "arguments": lambda y, w: cyxla.vmap(lambda r, v: r * v, in_axes=(0, None))(y, w),
    "two arguments": lambda y, w: cyxla.vmap(lambda r, s: r * s[0] + s)(y, y * 2),
    "keyword": lambda y, w: cyxla.vmap(lambda r, other: r @ other)(y, other=y + 1),
    "columns": lambda y, w: cyxla.vmap(lambda c: c @ w, in_axes=1)(y.T),
    "last axis": lambda y, w: cyxla.vmap(lambda c: c * w, in_axes=-1, out_axes=-1)(y.T),
    "out_axes": lambda y, w: cyxla.vmap(lambda r: np.outer(r, w), out_axes=1)(y),
    "containers": lambda y, w: cyxla.vmap(
        lambda p, v: {"a": (p["x"] @ v, p["z"][0] + 1), "b": v.sum()},
        in_axes=({"x": 0, "z": (1,)}, None), out_axes={"a": (0, 1), "b": None},
    )({"x": y, "z": (y.T,)}, w),
    "shared result": lambda y, w: cyxla.vmap(lambda r: (r.sum(), w * 2), out_axes=(0, None))(y),
    "repeated result": lambda y, w: cyxla.vmap(lambda r: w * 2)(y),
    "size inside": lambda y, w: cyxla.vmap(lambda c: (c - c.mean()) if len(w) else c, in_axes=1, out_axes=1)(y),
    "size inside, stacked first": lambda y, w: cyxla.vmap(lambda c: np.cumsum(c)[::-1], in_axes=1)(y),
    "size inside, part": lambda y, w: cyxla.vmap(lambda c: c[1:] * 2, in_axes=1)(y),
    "both sizes": lambda y, w: cyxla.vmap(lambda r: r / (1 + np.abs(r).sum()))(y @ y.T),
    "shared sized argument": lambda y, w: cyxla.vmap(lambda r, z: (z @ r).sum(), in_axes=(0, None))(y, y),
    "sized closure": lambda y, w: cyxla.vmap(lambda r: ((y - r) ** 2).sum(-1))(y),
    "nested": lambda y, w: cyxla.vmap(lambda r: cyxla.vmap(lambda s: (r * s).sum())(y))(y),
    "selection": lambda y, w: cyxla.vmap(lambda r: r[r > 0].sum())(y),
    "numbers": lambda y, w: cyxla.vmap(lambda v, k: w[k] * v)(y[:, 0], np.arange(y.shape[0]) % 3),
    "checked index": lambda y, w: cyxla.vmap(lambda k: w[k])(np.where(y[:, 0] > 0, 1, 2)),
    "while": lambda y, w: cyxla.vmap(halves)(np.abs(y[:, 0])),
    "branch": lambda y, w: cyxla.vmap(lambda v: cyxla.cond(v > 0, lambda u: u * 2, lambda u: u - 1, v))(y[:, 0]),
    "scan inside": lambda y, w: cyxla.vmap(lambda r: cyxla.scan(lambda c, v: (c + v, c * v), 0.0, r))(y),
    "scan of a size inside": lambda y, w: cyxla.vmap(
        lambda c: cyxla.scan(lambda a, v: (a + v, a), 0.0, c), in_axes=1, out_axes=(0, 1)
    )(y),
    "gradient inside": lambda y, w: cyxla.vmap(cyxla.grad(lambda r: np.tanh(r @ w)))(y),
    "sort": lambda y, w: cyxla.vmap(np.sort)(y),
    "element count": lambda y, w: cyxla.vmap(lambda r: r.sum())(y).sum() + cyxla.vmap(lambda r: 1)(y).size,
    "map": lambda y, w: cyxla.map(lambda r: r @ w, y),
    "map of containers": lambda y, w: cyxla.map(lambda p: {"a": p[0] + p[1]["b"]}, (y, {"b": y[:, :1]})),
    "map of columns": lambda y, w: cyxla.map(lambda c: c - c.sum(), y.T),
    "map of both sizes": lambda y, w: cyxla.map(lambda r: r * 2, y @ y.T),
    "scan": lambda y, w: cyxla.scan(running, w, y),
    "scan in reverse": lambda y, w: cyxla.scan(running, w, y, reverse=True),
    "unrolled scan": lambda y, w: cyxla.scan(running, w, y, unroll=4),
    "scan of a size inside the carry": lambda y, w: cyxla.scan(lambda c, r: (c + r, c.max(initial=0)), y[:, 0], y.T),
    "sized carry of both": lambda y, w: cyxla.scan(lambda c, r: (c * 0.5 + r, c[::-1]), y[:, 1], y @ y.T),
    "carry of containers": lambda y, w: cyxla.scan(
        lambda c, r: ({"n": c["n"] + 1, "s": c["s"] + r.sum()}, None), {"s": 0.0, "n": 0}, y),
    "scan without results": lambda y, w: cyxla.scan(lambda c, r: (np.maximum(c, r), None), w, y)[0],
    "nothing of the slice": lambda y, w: cyxla.scan(lambda c, r: (c + 1, c), 0, y),
    "scan in a scan": lambda y, w: cyxla.scan(lambda c, r: (c + cyxla.scan(running, w, y)[1].sum(), c), 0.0, y),
}  # fmt: skip
GRADIENTS_OF_MAPS = {
    "vmap": lambda y, w: cyxla.grad(lambda v, z: cyxla.vmap(lambda r: np.tanh(r @ v))(z).sum(), argnums=(0, 1))(w, y),
    "vmap of a function with a rule": lambda y, w: cyxla.grad(
        lambda v, z: (cyxla.vmap(lambda r: np.linalg.norm(r * v) + np.prod(r + v))(z) ** 2).sum(), argnums=(0, 1)
    )(w, y),
    "vmap without a mask of the results": lambda y, w: cyxla.grad(
        lambda v: cyxla.scan(lambda c, a: (c + a, None), 0.0, cyxla.vmap(lambda r: np.exp(r @ v))(y))[0]
    )(w),
    "vmap of roots": lambda y, w: cyxla.grad(lambda z: cyxla.vmap(lambda r: np.sqrt(r @ r))(z).sum())(y + 0.01),
    "vmap of logarithms": lambda y, w: cyxla.grad(lambda v: cyxla.vmap(lambda r: np.log(1.5 - v))(y).sum())(w * 0),
    "vmap of a scan": lambda y, w: cyxla.grad(
        lambda z: cyxla.vmap(lambda r: cyxla.scan(lambda c, v: (c * v, c), 1.0, r)[0])(z).sum()
    )(y),
    "vmap inside a size": lambda y, w: cyxla.grad(lambda z: cyxla.vmap(lambda c: (c**3).sum(), in_axes=1)(z) @ w)(y),
    "map": lambda y, w: cyxla.grad(lambda v, z: cyxla.map(lambda r: np.tanh(r @ v), z).sum(), argnums=(0, 1))(w, y),
    "scan": lambda y, w: cyxla.grad(lambda v, z: sum(t.sum() for t in cyxla.scan(running, v, z)), argnums=(0, 1))(w, y),
    "scan in reverse": lambda y, w: cyxla.value_and_grad(
        lambda v, z: (cyxla.scan(running, v, z, reverse=True)[1] ** 2).sum(), argnums=(0, 1)
    )(w, y),
    "scan with constants": lambda y, w: cyxla.grad(
        lambda v: cyxla.scan(lambda c, r: (np.tanh(np.outer(v, r) @ c), None), w, y)[0].sum()
    )(w),
    "scan of a sized carry": lambda y, w: cyxla.grad(
        lambda z: (cyxla.scan(lambda c, r: (c * r, c.sum()), z[:, 0], z.T)[0]).sum()
    )(y),
    "second": lambda y, w: cyxla.grad(
        lambda v: squares(cyxla.grad(lambda u: squares(cyxla.scan(running, u, y)[1]))(v))
    )(w),
    "direction": lambda y, w: cyxla.jvp(lambda v: cyxla.scan(running, v, y), (w,), (w + 1,)),
    "jacobian": lambda y, w: cyxla.jacobian(lambda v: cyxla.scan(running, v, y)[0])(w),
    "vmap of gradients": lambda y, w: cyxla.vmap(
        cyxla.grad(lambda r: cyxla.scan(running, w, np.outer(r, r))[1].sum())
    )(y),
}  # fmt: skip
FUNCTIONS = {
    f"{kind}: {name}": function
    for kind, table in (("grad", GRADIENTS), ("map", MAPS), ("grad of map", GRADIENTS_OF_MAPS))
    for name, function in table.items()
}
W = np.array([0.5, -1.0, 0.25])


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * 1.5


def assert_same(got, want, text):
    if isinstance(want, dict):
        assert list(got) == list(want), text
        got, want = list(got.values()), list(want.values())
    if isinstance(want, tuple | list):
        assert type(got) is type(want), text
        assert len(got) == len(want), text
        for g, v in zip(got, want, strict=True):
            assert_same(g, v, text)
    elif want is None:
        assert got is None, text
    else:
        assert np.shape(got) == np.shape(want), f"{text}: {np.shape(got)} instead of {np.shape(want)}"
        assert np.asarray(got).dtype == np.asarray(want).dtype, text
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11, err_msg=text)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_selected_rows(name, backend):
    """Compare with the function of the rows that a mask selects; the others are NaN."""
    function = FUNCTIONS[name]
    compiled = cyxla.jit(lambda x, m, w: function(x[m], w), platform=backend)
    for selected, mask in SELECTIONS.items():
        x = np.where(mask[:, None], rows(ROWS), np.nan)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = function(x[mask], W)
        assert_same(compiled(x, mask, W), want, f"{name} of {selected}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_size(name, backend):
    """Compare for arguments of any size, after calls with NaN, which remain in the padding."""
    function = FUNCTIONS[name]
    compiled = cyxla.jit(function, sizes="any", platform=backend)
    for n in (4, 5):
        compiled(rows(n), W)
    before = compiled.cache_info().misses
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(np.full((9, 3), np.nan), W)
        for n in (7, 3, 2):
            assert_same(compiled(rows(n, n), W), function(rows(n, n), W), f"{name} of {n} rows")
    assert compiled.cache_info().misses == before


def known_and_sized(x, m):
    y = x[m]
    return cyxla.vmap(np.multiply)(y, x[:4]), cyxla.scan(lambda c, p: (c + p[0] @ p[1], p[1]), 0.0, (y, x[:4]))


def known_length(x, m):
    doubled = cyxla.vmap(lambda r: r * 2, axis_size=4)(x[m])
    return doubled, cyxla.scan(lambda c, r: (c + r, None), np.zeros(3), x[m], length=4)[0]


def sizes_of_two_masks(x, m):
    y, z = x[m], x[~m]
    return cyxla.vmap(np.add)(y, z), cyxla.map(lambda p: p[0] - p[1], (y, z))


def gradient_of_two_masks(x, m):
    return cyxla.grad(lambda y, z: (cyxla.vmap(np.multiply)(y, z)).sum(), argnums=(0, 1))(x[m], x[~m])


def direction_of_another_mask(x, m):
    return cyxla.jvp(np.sin, (x[m],), (x[~m],))[1]


def cotangent_of_another_mask(x, m):
    return cyxla.vjp(lambda y: y**2, x[m])[1](x[~m])


@pytest.mark.parametrize("function, count", [
    (known_and_sized, 4), (known_length, 4), (sizes_of_two_masks, 3), (gradient_of_two_masks, 3),
    (direction_of_another_mask, 3), (cotangent_of_another_mask, 3),
])  # fmt: skip
def test_sizes_must_agree(function, count, backend):
    x = rows(ROWS)
    compiled = cyxla.jit(function, platform=backend)
    mask = np.arange(ROWS) < count
    assert_same(compiled(x, mask), function(x, mask), function.__name__)
    for wrong in (count - 1, count + 1):
        with pytest.raises(ShapeError, match=rf"\b({wrong}|{ROWS - wrong}|{count})\b.* \b({wrong}|{ROWS - wrong})\b"):
            compiled(x, np.arange(ROWS) < wrong)


def shrinking_carry(x, m):
    return cyxla.scan(lambda c, r: (c[c > r[0]], c.sum()), x[m][:, 0], x[m])


def shrinking_carry_in_numpy(x, m):
    carry, sums = x[m][:, 0], []
    for r in x[m]:
        sums.append(carry.sum())
        carry = carry[carry > r[0]]
    return carry, np.array(sums)


@pytest.mark.parametrize("selected", SELECTIONS)
def test_a_carry_whose_size_changes(selected, backend):
    x, mask = rows(ROWS), SELECTIONS[selected]
    got = cyxla.jit(shrinking_carry, platform=backend)(x, mask)
    assert_same(got, shrinking_carry_in_numpy(x, mask), selected)


def written_rows(x, m):
    def change(r):
        r[0] = r.sum()
        return r[1]

    y = x[m]
    return cyxla.vmap(change)(y), y


def test_writes_of_mapped_functions(backend):
    x = rows(ROWS)
    for mask in SELECTIONS.values():
        y = x[mask]
        want = y[:, 1].copy()
        y[:, 0] = y.sum(1)
        assert_same(cyxla.jit(written_rows, platform=backend)(x, mask), (want, y), "written")


def printed(x, m):
    def show(r):
        cyxla.print("row {}", r[0])
        return r[0]

    return cyxla.vmap(show)(x[m])


@pytest.mark.parametrize("selected", SELECTIONS)
def test_prints_run_for_elements_that_count(selected, capfd):
    mask = SELECTIONS[selected]
    cyxla.jit(printed)(np.arange(ROWS * 2.0).reshape(ROWS, 2), mask)
    assert capfd.readouterr().out.splitlines() == [f"row {2.0 * k}" for k in np.flatnonzero(mask)]


def failing_rows(x, m):
    return cyxla.vmap(lambda r, k: r[k])(x[m], np.arange(ROWS)[m])


def test_checks_concern_elements_that_count(backend):
    compiled = cyxla.jit(failing_rows, platform=backend)
    x = rows(ROWS)
    np.testing.assert_array_equal(compiled(x, np.arange(ROWS) < 3), x[range(3), range(3)])
    np.testing.assert_array_equal(compiled(x, np.arange(ROWS) < 0), np.zeros(0))
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        compiled(x, np.isin(np.arange(ROWS), [1, 4, 5]))


def test_indices_in_the_padding_are_not_checked(backend):
    compiled = cyxla.jit(lambda x, k: cyxla.vmap(lambda i: x[i])(k), sizes="any", platform=backend)
    for n in (4, 5, 9):
        compiled(rows(n), np.arange(n))
    before = compiled.cache_info().misses
    np.testing.assert_array_equal(compiled(rows(3), np.arange(3)[::-1]), rows(3)[::-1])  # 3 to 8 are in the padding
    assert compiled.cache_info().misses == before


REFUSED = {
    "sizes of elements": (lambda y: cyxla.vmap(lambda r: r[r > 0])(y), TraceError, "another size for each element"),
    "sizes of iterations": (lambda y: cyxla.map(lambda r: r[r > 0], y), TraceError, "another size in each iteration"),
    "results that differ": (
        lambda y: cyxla.vmap(lambda r: y[:, 0] * r[0], out_axes=None)(y), InvalidArgumentError, "differs by element",
    ),
    "no axis": (lambda y: cyxla.vmap(np.sum, in_axes=2)(y), ShapeError, "has no axis 2"),
    "associative": (lambda y: cyxla.associative_scan(np.add, y), TraceError, "associative_scan"),
    "carry of another rank": (lambda y: cyxla.scan(lambda c, r: (r, None), y, y), TraceError, "init"),
    "bound of the carry": (lambda y: cyxla.scan(lambda c, r: (y[:, :1], None), y, y), TraceError, "init"),
    "no scalar": (lambda y: cyxla.grad(lambda z: z * 2)(y), TraceError, "must return a real scalar"),
    "integers": (lambda y: cyxla.grad(np.sum)(y.astype(int)), DTypeError, "argument 0 has dtype int64"),
    "jacobian of a matrix": (lambda y: cyxla.jacobian(lambda z: z * 2)(y), UnimplementedError, "only known when it"),
    "rank of a cotangent": (lambda y: cyxla.vjp(np.sin, y)[1](y[:, 0]), ShapeError, "cotangent 0 has shape"),
    "structure of a direction": (lambda y: cyxla.jvp(np.sin, (y,), ((y, y),)), InvalidArgumentError, "structure"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name):
    function, error, text = REFUSED[name]
    with pytest.raises(error, match=text) as caught:
        cyxla.jit(lambda x, m: function(x[m]))(rows(ROWS), SELECTIONS["some"])
    assert f"{__file__}:" in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
