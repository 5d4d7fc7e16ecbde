# ruff: noqa: E501 - programs are longer than lines
"""Regions that use values from around them, functions that call functions, sizes that are open."""

import numpy as np
import pytest
from support.interrupts import at_most

import cyxla
from cyxla.errors import (
    DTypeError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
)
from cyxla.types import Shape
from cyxla.xla.stablehlo import read_stablehlo

X = np.array([1, 2, 3], np.float32)

LOOP = """func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> (tensor<i32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %twice = stablehlo.add %x, %x : tensor<3xf32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<3xf32> attributes {note}
  cond {
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %k = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.add %s, %twice : tensor<3xf32>
    stablehlo.return %k, %t : tensor<i32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<3xf32>
}"""


def test_loops_use_values_from_around_them(backend):
    count, total = cyxla.compile(LOOP, platform=backend)(X, np.int32(4))
    assert count == 4
    np.testing.assert_array_equal(total, X + 4 * 2 * X)


def test_constants_are_repeated_in_regions_and_arrays_carried():
    loop = read_stablehlo(LOOP).entry.root.operands[0].operands[0]
    assert str(loop.shape) == "(s32[], f32[3], s32[], f32[3])"  # i and s; n and twice
    assert any(i.opcode == "constant" for i in loop.called[0].instructions)


def test_a_loop_of_one_value(backend):
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %r = "stablehlo.while"(%x) ({
      ^bb0(%i: tensor<i32>):
        %h = stablehlo.constant dense<100> : tensor<i32>
        %c = stablehlo.compare LT, %i, %h : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }, {
      ^bb0(%i: tensor<i32>):
        %d = stablehlo.add %i, %i : tensor<i32>
        stablehlo.return %d : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      return %r : tensor<i32>
    }"""
    assert cyxla.compile(text, platform=backend)(np.int32(3)) == 192


def test_branches_inside_a_loop_inside_a_branch(backend):
    text = """func.func @main(%p: tensor<i1>, %x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %r:2 = "stablehlo.if"(%p) ({
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %w:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<3xf32> cond {
          %n = stablehlo.constant dense<3> : tensor<i32>
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %one = stablehlo.constant dense<1> : tensor<i32>
          %k = stablehlo.add %i, %one : tensor<i32>
          %q = stablehlo.compare EQ, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %t = "stablehlo.if"(%q) ({
            %u = stablehlo.add %s, %y : tensor<3xf32>
            stablehlo.return %u : tensor<3xf32>
          }, {
            stablehlo.return %s : tensor<3xf32>
          }) : (tensor<i1>) -> tensor<3xf32>
          stablehlo.return %k, %t : tensor<i32>, tensor<3xf32>
        }
        stablehlo.return %w#1, %y : tensor<3xf32>, tensor<3xf32>
      }, {
        stablehlo.return %y, %x : tensor<3xf32>, tensor<3xf32>
      }) : (tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>)
      return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
    }"""
    run = cyxla.compile(text, platform=backend)
    np.testing.assert_array_equal(run(np.bool_(True), X, 10 * X), (11 * X, 10 * X))
    np.testing.assert_array_equal(run(np.bool_(False), X, 10 * X), (10 * X, X))


def reducing(body, before=""):
    return f"""func.func @main(%x: tensor<3xf32>, %s: tensor<f32>) -> tensor<f32> {{
      {before}
      %r = "stablehlo.reduce"(%x, %s) <{{dimensions = array<i64: 0>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {body}
      }}) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      return %r : tensor<f32>
    }}"""


def test_reductions_of_known_values():
    before = "%two = stablehlo.constant dense<2.0> : tensor<f32> %four = stablehlo.multiply %two, %two : tensor<f32>"
    body = "%c = stablehlo.maximum %a, %b : tensor<f32> %d = stablehlo.minimum %c, %four : tensor<f32> stablehlo.return %d : tensor<f32>"
    assert cyxla.compile(reducing(body, before), platform="interpreter")(3 * X, np.float32(0)) == 4


def test_reductions_do_not_use_arguments_from_around_them():
    body = "%c = stablehlo.add %a, %s : tensor<f32> stablehlo.return %c : tensor<f32>"
    with pytest.raises(UnimplementedError, match="from around it") as caught:
        read_stablehlo(reducing(body))
    assert "line 5" in caught.value.where


FUNCTIONS = """module @m {
  func.func private @half(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %h = stablehlo.constant dense<0.5> : tensor<f32>
    %b = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %0 = stablehlo.multiply %x, %b : tensor<3xf32>
    return %0, %h : tensor<3xf32>, tensor<f32>
  }
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0:2 = call @half(%x) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>)
    %1:2 = "func.call"(%0#0) <{callee = @half}> : (tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>)
    %2:2 = stablehlo.composite "my.half" %1#0 {decomposition = @half, version = 1 : i32, composite_attributes = {a = 1 : i64}} : (tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>)
    func.call @nothing() : () -> ()
    return %2#0 : tensor<3xf32>
  }
  func.func private @nothing() { return }
  func.func private @unused(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }
}"""


def test_functions(backend):
    np.testing.assert_array_equal(cyxla.compile(FUNCTIONS, platform=backend)(X), X / 8)


def test_functions_are_shared():
    module = read_stablehlo(FUNCTIONS)
    assert sorted(module.computations) == ["half", "main", "nothing"]


@pytest.mark.parametrize("text, error, match", [
    ("func.func private @f() { call @f() : () -> () return }\nfunc.func @main() { call @f() : () -> () return }", InvalidArgumentError, "calls itself"),
    ("func.func private @f()\nfunc.func @main() { call @f() : () -> () return }", UnimplementedError, "no body"),
    ("func.func @main() { call @g() : () -> () return }", InvalidArgumentError, "@g"),
    ("func.func private @f(%a: tensor<f32>) { return }\nfunc.func @main() { call @f() : () -> () return }", InvalidArgumentError, "takes 1 values, not 0"),
    ("func.func @main(%a: tensor<f32>) -> tensor<i32> { return %a : tensor<f32> }", InvalidArgumentError, "its type is"),
    ("func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.negate %a : tensor<f32> }", InvalidArgumentError, "without a return"),
])  # fmt: skip
def test_functions_that_do_not_fit(text, error, match):
    with pytest.raises(error, match=match):
        read_stablehlo(text)


OPEN = """func.func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %ok = stablehlo.compare GE, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "at least 3 rows, not {0}", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %0 = call @flat(%n, %x) : (tensor<i32>, tensor<?x3xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @times(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.multiply %a, %b : tensor<i32>
  return %0 : tensor<i32>
}
func.func private @flat(%n: tensor<i32>, %x: tensor<?x3xf32>) -> tensor<?xf32> {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %size = call @times(%n, %three) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %shape = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
  %flat = stablehlo.dynamic_reshape %x, %shape : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  %count = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %0 = stablehlo.add %flat, %count : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""


@pytest.mark.parametrize("rows", [3, 5])
def test_open_sizes_are_settled_by_the_arguments(backend, rows):
    x = np.ones((rows, 3), np.float32)
    run = cyxla.compile(OPEN, x, platform=backend)
    np.testing.assert_array_equal(run(x), np.arange(rows * 3) + 1)


@pytest.mark.parametrize("spec", [
    cyxla.spec((3, 3), np.float32), ((3, 3), np.float32), ([3, 3], "f4"), cyxla.Shape.array("f32", (3, 3)),
])  # fmt: skip
def test_open_sizes_are_set_by_specs(spec):
    x = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(cyxla.compile(OPEN, spec, platform="interpreter")(x), np.arange(9) + 1)


@pytest.mark.parametrize("specs, error, match", [
    ([((3, 4), np.float32)], ShapeError, r"argument 0 of @main is f32\[\?,3\], not f32\[3,4\]"),
    ([((3, 3), float)], ShapeError, r"not f64\[3,3\]"),
    ([((3, 3), "f32")], DTypeError, "'f32' is not a dtype"),
    ([((-1, 3), "f4")], ShapeError, "is not a shape"),
    ([((3, None), "f4")], UnimplementedError, "has sizes of None"),
    ([[[1.0], [2.0, 3.0]]], InvalidArgumentError, "argument 0 is described by"),
    ([None], DTypeError, "argument 0 is described by None"),
    ([((3, 3), "f4")] * 2, InvalidArgumentError, "takes 1 arguments, not 2"),
])  # fmt: skip
def test_specs_that_do_not_fit(specs, error, match):
    with pytest.raises(error, match=match):
        cyxla.compile(OPEN, *specs, platform="interpreter")


V = "tensor<?xf32>"
SIZES = ", ".join(["tensor<1xi64>"] * 3)
DOUBLING = {
    "same": "%0 = CALL(%x, %k) : TYPES %1 = CALL(%0, %k) : TYPES",
    "numbers": """%c = stablehlo.constant dense<STEP> : tensor<i32> %more = stablehlo.add %k, %c : tensor<i32>
        %0 = CALL(%x, %k) : TYPES %1 = CALL(%0, %more) : TYPES""",
    "sizes": f"""%v = stablehlo.constant dense<0.0> : tensor<f32> %zero = stablehlo.constant dense<0> : tensor<1xi64>
        %step = stablehlo.constant dense<STEP> : tensor<1xi64>
        %more = stablehlo.dynamic_pad %x, %v, %zero, %step, %zero : ({V}, tensor<f32>, {SIZES}) -> {V}
        %0 = CALL(%x, %k) : TYPES %1 = CALL(%more, %k) : TYPES""",
}  # fmt: skip


def doubling(levels, name):
    """Functions of open sizes, each of which calls the one below twice; a step is as large as those below together."""
    head, types = f"(%x: {V}, %k: tensor<i32>) -> {V}", f"({V}, tensor<i32>) -> {V}"
    lines = [f"func.func private @f0{head} {{ %0 = stablehlo.sine %x : {V} return %0 : {V} }}"]
    for k in range(levels):
        body = DOUBLING[name].replace("CALL", f"call @f{k}").replace("TYPES", types).replace("STEP", str(2**k))
        lines.append(f"func.func private @f{k + 1}{head} {{ {body} return %1 : {V} }}")
    body = f"%k = stablehlo.constant dense<0> : tensor<i32> %0 = call @f{levels}(%x, %k) : {types}"
    return "\n".join([*lines, f"func.func @main(%x: {V}) -> {V} {{ {body} return %0 : {V} }}"])


def test_functions_of_open_sizes_are_shared():
    text = doubling(23, "same")
    with at_most(lines=1_000_000):
        module = read_stablehlo(text, [Shape.array("f32", (3,))])
    assert sum(len(c.instructions) for c in module.computations.values()) < 100


def test_functions_of_open_sizes_agree_with_inlined_ones():
    text = doubling(5, "same")
    x = want = np.float32([0.5, 1, 2])
    for _ in range(32):
        want = np.sin(want)
    for platform in ("interpreter", "cpu"):
        np.testing.assert_allclose(cyxla.compile(text, x, platform=platform)(x), want, 1e-5)


def test_known_sizes_go_into_functions_and_come_out_of_them(backend):
    """The sizes are worked out in a function of the sizes that another one found."""
    text = """func.func private @rows(%x: tensor<?x3xf32>) -> (tensor<i32>, tensor<?x3xf32>) {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
      %y = stablehlo.negate %x : tensor<?x3xf32>
      return %n, %y : tensor<i32>, tensor<?x3xf32>
    }
    func.func private @filled(%n: tensor<i32>, %v: tensor<f32>) -> tensor<?xf32> {
      %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %0 = stablehlo.dynamic_broadcast_in_dim %v, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    func.func @main(%x: tensor<?x3xf32>, %v: tensor<f32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x3xf32>) {
      %n, %y = call @rows(%x) : (tensor<?x3xf32>) -> (tensor<i32>, tensor<?x3xf32>)
      %m = stablehlo.add %n, %n : tensor<i32>
      %0 = call @filled(%n, %v) : (tensor<i32>, tensor<f32>) -> tensor<?xf32>
      %1 = call @filled(%m, %v) : (tensor<i32>, tensor<f32>) -> tensor<?xf32>
      %2 = call @filled(%n, %v) : (tensor<i32>, tensor<f32>) -> tensor<?xf32>
      return %0, %1, %2, %y : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x3xf32>
    }"""
    x = np.ones((2, 3), np.float32)
    found = cyxla.compile(text, x, np.float32(7), platform=backend)(x, np.float32(7))
    for got, want in zip(found, ([7] * 2, [7] * 4, [7] * 2, -x), strict=True):
        np.testing.assert_array_equal(got, np.float32(want))
    module = read_stablehlo(text, [Shape.of(x), Shape.array("f32", ())])
    assert sorted(module.computations) == ["filled", "filled.1", "main", "rows"]  # one @filled for each size


def test_functions_of_open_sizes_without_results():
    text = """func.func private @tell(%x: tensor<?xf32>) {
      stablehlo.custom_call @tell(%x) {has_side_effect = true} : (tensor<?xf32>) -> ()
      return
    }
    func.func private @nothing(%x: tensor<?xf32>) { return }
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      call @tell(%x) : (tensor<?xf32>) -> ()
      call @nothing(%x) : (tensor<?xf32>) -> ()
      return %x : tensor<?xf32>
    }"""
    module = read_stablehlo(text, [Shape.array("f32", (3,))])
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "call"]


def test_effects_of_functions_of_known_results_stay():
    text = """func.func private @rows(%x: tensor<?xf32>) -> tensor<i32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      stablehlo.custom_call @tell(%x) {has_side_effect = true} : (tensor<?xf32>) -> ()
      return %n : tensor<i32>
    }
    func.func @main(%x: tensor<?xf32>) -> tensor<i32> {
      %n = call @rows(%x) : (tensor<?xf32>) -> tensor<i32>
      return %n : tensor<i32>
    }"""
    module = read_stablehlo(text, [Shape.array("f32", (3,))])
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "call", "constant"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "sizes"])
def test_functions_that_multiply_with_other_sizes_each_time_are_refused(name):
    with at_most(lines=5_000_000), pytest.raises(ResourceExhaustedError, match="@f") as caught:
        read_stablehlo(doubling(23, name), [Shape.array("f32", (3,))])
    assert "column" in caught.value.where


@pytest.mark.parametrize("given, error, match", [
    ((np.ones((2, 3), np.float32),), ShapeError, "at least 3 rows, not 2"),
    ((np.ones((3, 4), np.float32),), ShapeError, "argument 0"), ((np.ones((3, 3)),), ShapeError, "argument 0"), ((X, X), InvalidArgumentError, "1 arguments"),
])  # fmt: skip
def test_open_sizes_that_do_not_fit(given, error, match):
    with pytest.raises(error, match=match):
        cyxla.compile(OPEN, *given, platform="interpreter")


def test_sizes_that_depend_on_values_are_not_read():
    text = """func.func @main(%n: tensor<1xi32>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    with pytest.raises(UnimplementedError, match="depends on the arguments") as caught:
        read_stablehlo(text)
    assert isinstance(caught.value, OpError)
    assert "line 2" in caught.value.where


@pytest.mark.parametrize("sized", [False, True])
def test_approximate_top_k_is_exact(sized):
    more = ("", "", "", "2") if not sized else (
        ", %s, %s", "indices_of_shape_operands = dense<[4, 5]> : tensor<2xi64>, ", ", tensor<2xi32>, tensor<2xi32>", "?",
    )  # fmt: skip
    text = """func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
      %i = stablehlo.iota dim = 1 : tensor<2x4xi32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %none = stablehlo.constant dense<-1> : tensor<i32>
      %s = stablehlo.constant dense<2> : tensor<2xi32>
      %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %low, %none OPERANDS) {called_computations = [@greater], ATTRIBUTES mhlo.backend_config = {aggregate_to_topk = true, reduction_dim = 1 : i64, top_k = 2 : i64}} : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32> TYPES) -> (tensor<SIZEx2xf32>, tensor<SIZEx2xi32>)
      return %0#0, %0#1 : tensor<SIZEx2xf32>, tensor<SIZEx2xi32>
    }
    func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
      %0 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      return %0 : tensor<i1>
    }"""
    for name, part in zip(("OPERANDS", "ATTRIBUTES", "TYPES", "SIZE"), more, strict=True):
        text = text.replace(name, part)
    values, places = cyxla.compile(text, platform="interpreter")(np.array([[1, 4, 3, 2], [8, 5, 6, 7]], np.float32))
    np.testing.assert_array_equal(values, [[4, 3], [8, 7]])
    np.testing.assert_array_equal(places, [[1, 2], [0, 3]])


FOREIGN = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = call @f(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %1 = stablehlo.negate %x : tensor<3xf32>
  %0 = stablehlo.custom_call @my_target(%1) : (tensor<3xf32>) -> tensor<3xf32> LOC
  return %0 : tensor<3xf32>
}"""


@pytest.mark.parametrize("location", ["", 'loc("a.py":30:4)'])
def test_errors_of_unknown_custom_calls_have_a_location_and_a_remedy(backend, location):
    text = FOREIGN.replace("LOC", location)
    with pytest.raises(UnimplementedError, match="'my_target' is not registered") as caught:
        cyxla.compile(text, platform=backend)
    assert "line 7, column 8: stablehlo.custom_call" in caught.value.where
    assert "cyxla.register_custom_call" in caught.value.hint
    assert "interpreter" not in str(caught.value)
    run = cyxla.compile(text, platform=backend, custom_calls={"my_target": lambda ev, ins, x: 2 * x})
    np.testing.assert_array_equal(run(X), -2 * X)
