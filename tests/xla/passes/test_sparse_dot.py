"""Products with nearly empty constant matrices: picked and added up, unless an element is not finite."""

import numpy as np
import pytest
from support.hlo.differential import arguments

import cyxla
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import parse_module, verify
from cyxla.xla.passes.simplify import sparse_dot


def band(rows: int, columns: int, dtype: str = "f32", name: str = "w") -> str:
    """A matrix with at most two numbers in each column, made of iotas."""
    shape = f"{dtype}[{rows},{columns}]"
    return f"""
{name}i = {shape} iota(), iota_dimension=0
{name}j = {shape} iota(), iota_dimension=1
{name}f = {dtype}[] constant({rows / columns})
{name}b = {shape} broadcast({name}f), dimensions={{}}
{name}m = {shape} multiply({name}j, {name}b)
{name}d = {shape} subtract({name}i, {name}m)
{name}a = {shape} abs({name}d)
{name}o = {dtype}[] constant(1)
{name}p = {shape} broadcast({name}o), dimensions={{}}
{name}s = {shape} subtract({name}p, {name}a)
{name}z = {dtype}[] constant(0)
{name}y = {shape} broadcast({name}z), dimensions={{}}
{name} = {shape} maximum({name}s, {name}y)"""


def program(body: str) -> str:
    return f"HloModule m\nENTRY e {{ {body} }}"


LEFT = "lhs_contracting_dims={0}, rhs_contracting_dims={%d}"
CASES = {
    "from the left": program(
        f"x = f32[64,90,4] parameter(0) {band(64, 150)} ROOT r = f32[150,90,4] dot(w, x), {LEFT % 0}"
    ),
    "from the right": program(
        f"x = f32[40,7,64] parameter(0) {band(64, 150)} "
        "ROOT r = f32[40,7,150] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}"
    ),
    "narrow": program(f"x = f32[40,64,3] parameter(0) {band(64, 150)} ROOT r = f32[150,40,3] dot(w, x), {LEFT % 1}"),
    "transposed": program(
        f"x = f32[40,64,3] parameter(0) {band(64, 150)} d = f32[150,40,3] dot(w, x), {LEFT % 1} "
        "ROOT r = f32[40,150,3] transpose(d), dimensions={1,0,2}"
    ),
    "two directions": program(
        f"x = f32[2,32,48,3] parameter(0) {band(32, 70)} {band(48, 100, name='v')} "
        f"d = f32[70,2,48,3] dot(w, x), {LEFT % 1} "
        "e = f32[70,2,3,100] dot(d, v), lhs_contracting_dims={2}, rhs_contracting_dims={0} "
        "ROOT r = f32[2,70,100,3] transpose(e), dimensions={1,0,3,2}"
    ),
    "double": program(
        f"x = f64[64,200] parameter(0) {band(64, 150, 'f64')} ROOT r = f64[150,200] dot(w, x), {LEFT % 0}"
    ),
    "smaller": program(f"x = f32[64,900] parameter(0) {band(64, 20)} ROOT r = f32[20,900] dot(w, x), {LEFT % 0}"),
}  # fmt: skip
ZEROS = "z = f32[] constant(0) w = f32[64,150] broadcast(z), dimensions={}"
CASES |= {
    f"zeros {where}": program(f"x = {x} parameter(0) {ZEROS} ROOT r = {dot}")
    for where, x, dot in [
        ("in rows", "f32[400,64]", "f32[400,150] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("on the right", "f32[4,70,64]", "f32[4,70,150] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
        ("on the left", "f32[64,90,4]", f"f32[150,90,4] dot(w, x), {LEFT % 0}"),
        ("inside", "f32[3,64,10,4,2]", f"f32[150,3,10,4,2] dot(w, x), {LEFT % 1}"),
    ]
}
SAME = {
    "not constant": program(
        f"x = f32[64,200] parameter(0) y = f32[64,150] parameter(1) ROOT r = f32[150,200] dot(y, x), {LEFT % 0}"
    ),
    "not empty": program(
        "x = f32[64,200] parameter(0) w = f32[64,150] iota(), iota_dimension=0 "
        f"ROOT r = f32[150,200] dot(w, x), {LEFT % 0}"
    ),
    "little": program(f"x = f32[64,2] parameter(0) {band(64, 150)} ROOT r = f32[150,2] dot(w, x), {LEFT % 0}"),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_same_sums(text):
    module = parse_module(text)
    given = arguments(module)
    want = evaluate(module, given)
    assert sparse_dot.run(module)
    verify(module)
    np.testing.assert_allclose(evaluate(module, given), want, rtol=1e-5, atol=1e-5)
    compiled = cyxla.compile(text)
    assert "conditional" in compiled.hlo("optimized")
    np.testing.assert_allclose(compiled(*given), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -2e38, 0.0, -0.0])
@pytest.mark.parametrize("name", ["narrow", "two directions", "zeros on the right"])
def test_zero_times_infinity(name, value):
    module = parse_module(CASES[name])
    (x,) = arguments(module)
    x.reshape(-1)[137] = value
    with np.errstate(all="ignore"):
        want = evaluate(module, [x])
    np.testing.assert_allclose(cyxla.compile(CASES[name])(x), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_others_stay(text):
    assert not sparse_dot.run(parse_module(text))


@pytest.mark.parametrize("bad", [None, np.inf, np.nan])
def test_layer_of_zeros(bad):
    w, x = np.zeros((16, 32), np.float32), np.ones((64, 30, 16), np.float32)
    if bad is not None:
        x[3, 4, 5] = bad
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cyxla.jit(lambda x: x @ w)(x), x @ w)
