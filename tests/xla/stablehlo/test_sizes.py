"""Sizes that loops, branches and functions hand on, and what evaluating them costs."""

import numpy as np
import pytest

import cyxla
from cyxla.xla.stablehlo.reader import StableHloProgram
from cyxla.xla.stablehlo.sizes import evaluator

V, S = "tensor<?xf32>", "tensor<i32>"
HEAD = f"""%n = stablehlo.get_dimension_size %x, dim = 0 : ({V}) -> {S} %z = stablehlo.constant dense<0> : {S}
  %one = stablehlo.constant dense<1> : {S} %three = stablehlo.constant dense<3> : {S} """
SAME = f"func.func private @same(%a: {S}, %b: {S}) -> ({S}, {S}) {{ return %b, %a : {S}, {S} }}"
TWICE = f"""func.func private @twice(%a: {S}, %b: {S}) -> ({S}, {S}) {{
  %r:2 = func.call @same(%a, %b) : ({S}, {S}) -> ({S}, {S})
  %s:2 = func.call @same(%r#0, %r#1) : ({S}, {S}) -> ({S}, {S}) return %s#1, %s#0 : {S}, {S} }} {SAME}"""


def iota(size):
    return f"""%m1 = stablehlo.reshape {size} : ({S}) -> tensor<1xi32>
      %k = stablehlo.dynamic_iota %m1, dim = 0 : (tensor<1xi32>) -> {V} """


def less(name, one, other):
    return f"%{name} = stablehlo.compare LT, {one}, {other}, SIGNED : ({S}, {S}) -> tensor<i1> "


def returned(*values):
    return f"stablehlo.return {', '.join(values)} : {', '.join([S, S, V][3 - len(values) :])}"


def loop(before, size, kept, more="", limit="%three"):
    """Add an iota of a size three times; `kept` is the size that an iteration hands on to the next one."""
    body = before + iota(size) + f"%w = stablehlo.add %y, %k : {V} " + returned("%j", kept, "%w")
    return f"""func.func @main(%x: {V}) -> {V} {{ {HEAD}
  %r:3 = stablehlo.while(%i = %z, %m = %n, %y = %x) : {S}, {S}, {V} cond {{
    {less("c", "%i", limit)} stablehlo.return %c : tensor<i1>
  }} do {{ %j = stablehlo.add %i, %one : {S} {body} }} return %r#2 : {V} }} {more}"""


def call(name):
    return f"%s:2 = func.call @{name}(%i, %m) : ({S}, {S}) -> ({S}, {S}) "


def branch(one, other):
    regions = ", ".join(f"{{ stablehlo.return {v} : {S} }}" for v in (one, other))
    return less("f", "%i", "%one") + f'%s = "stablehlo.if"(%f) ({regions}) : (tensor<i1>) -> {S} '


CASE = f'%s = "stablehlo.case"(%i) ({{ stablehlo.return %m : {S} }}, {{ stablehlo.return %m : {S} }}) : ({S}) -> {S} '
INNER = f"""%q:3 = stablehlo.while(%a = %z, %p = %m, %b = %y) : {S}, {S}, {V} cond {{
    {less("d", "%a", "%one")} stablehlo.return %d : tensor<i1>
  }} do {{ %e = stablehlo.add %a, %one : {S} {iota("%p").replace("%m1", "%m2").replace("%k", "%l")}
    %v = stablehlo.add %b, %l : {V} {returned("%e", "%p", "%v")} }} """
BARRIER = f"%s = stablehlo.optimization_barrier %m : {S} "
LOOPS = {
    "state": loop("", "%m", "%m"),
    "outer": loop("", "%m", "%n"),
    "barrier": loop(BARRIER, "%s", "%s"),
    "function": loop(call("same"), "%m", "%s#0", SAME),
    "size_of_function": loop(call("same"), "%s#0", "%s#0", SAME),
    "functions": loop(call("twice"), "%s#0", "%m", TWICE),
    "if": loop(branch("%m", "%m"), "%m", "%s"),
    "size_of_if": loop(branch("%m", "%m"), "%s", "%s"),
    "unlike_branches": loop(branch("%m", "%n"), "%s", "%m"),
    "case": loop(CASE, "%s", "%s"),
    "inner": loop(INNER, "%q#1", "%q#1"),
    "limit": loop("", "%m", "%m", limit="%m"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_size_in_the_state_of_a_loop_that_stays_as_it_is(name, backend):
    run = cyxla.compile(LOOPS[name], platform=backend)
    for n in (3, 1, 5, 0):
        x = np.ones(n, "f4")
        np.testing.assert_array_equal(run(x), x + (n if name == "limit" else 3) * np.arange(n))


def test_a_loop_whose_state_is_one_size(backend):
    text = f"""func.func @main(%x: {V}) -> {V} {{ {HEAD} %f = stablehlo.constant dense<false> : tensor<i1>
      %r = stablehlo.while(%m = %n) : {S} cond {{ stablehlo.return %f : tensor<i1> }} do {{
        {returned("%m").replace(V, S)} }}
      {iota("%r")} return %k : {V} }}"""
    np.testing.assert_array_equal(cyxla.compile(text, platform=backend)(np.ones(3, "f4")), np.arange(3))


def test_a_size_that_an_argument_holds_is_read(backend):
    text = LOOPS["state"].replace(f"%x: {V}) ->", f"%x: {V}, %n: {S}) ->").replace(HEAD, HEAD[HEAD.index("%z") :])
    run = cyxla.compile(text, platform=backend)
    for n in (3, 5):
        np.testing.assert_array_equal(run(np.ones(n, "f4"), np.int32(n)), 1 + 3 * np.arange(n))


@pytest.mark.parametrize("kept", ["%j", "%d"])
def test_a_size_that_changes_is_refused(kept):
    text = loop(f"%d = stablehlo.subtract %m, %one : {S} ", "%m", kept)
    with pytest.raises(cyxla.errors.UnimplementedError, match="depends on the arguments"):
        cyxla.compile(text, platform="interpreter")(np.ones(3, "f4"))


@pytest.mark.parametrize("malformed", [
    f"%s = \"stablehlo.while\"(%n) ({{ ^bb0(%a: {S}): stablehlo.return %a : {S} }}) : ({S}) -> {S}",
    f"%s = \"stablehlo.while\"(%n) : ({S}) -> {S}", f"%s = \"stablehlo.if\"(%n) : ({S}) -> {S}",
    f"%s = func.call @empty(%n) : ({S}) -> {S}",
    f"%s = \"stablehlo.while\"(%n) ({{ stablehlo.return %z : {S} }}, {{ stablehlo.return }}) : ({S}) -> {S}",
])  # fmt: skip
def test_a_size_from_a_malformed_operation(malformed):
    body = loop("", "%m", "%m").replace("return %r#2", f"{malformed} {iota('%s')} return %k")
    with pytest.raises(cyxla.errors.OpError):
        cyxla.compile(f"{body} func.func private @empty(%a: {S}) -> {S} {{ }}", platform="interpreter")(
            np.ones(3, "f4")
        )


@pytest.mark.parametrize("argument, dims", [(V, (3,)), ("tensor<?x2xf32>", (3, 2)), ("tensor<f32>", ())])
@pytest.mark.parametrize("index", ["index", "i32", "i64"])
def test_shape_of(argument, dims, index, backend):
    sizes, rank = f"tensor<{len(dims)}x{index}>", len(dims)
    text = f"""func.func @main(%x: {argument}) -> tensor<{"?x" * rank}f32> {{
      %s = shape.shape_of %x : {argument} -> {sizes} %one = stablehlo.constant dense<1.0> : tensor<f32>
      %r = stablehlo.dynamic_broadcast_in_dim %one, %s, dims = [] : (tensor<f32>, {sizes}) -> tensor<{"?x" * rank}f32>
      return %r : tensor<{"?x" * rank}f32> }}"""
    assert cyxla.compile(text, platform=backend)(np.zeros(dims, "f4")).shape == dims


def test_shape_of_an_array_with_bounds(backend):
    text = """func.func @main(%x: BOUNDED) -> tensor<2xi64> {
      %s = shape.shape_of %x : BOUNDED -> tensor<2xi64> return %s : tensor<2xi64> }"""
    text = text.replace("BOUNDED", "tensor<?x2xf32, #stablehlo.bounds<8, ?>>")
    np.testing.assert_array_equal(cyxla.compile(text, platform=backend)(np.zeros((3, 2), "f4")), [3, 2])


# What it costs


def counted(count, result):
    """Loops of as many steps as the argument has elements, each with a number and a float that a function takes."""
    loops = "".join(
        f"""%r{k}:2 = stablehlo.while(%i = %z, %s = %h) : {S}, tensor<f32> cond {{
          {less("c", "%i", "%n")} stablehlo.return %c : tensor<i1>
        }} do {{ %j = stablehlo.add %i, %one : {S} %u = stablehlo.add %s, %h : tensor<f32>
          stablehlo.return %j, %u : {S}, tensor<f32> }}
        %y{k + 1} = func.call @g({result.replace("NUMBER", str(k))}, %y{k}) : (TYPE, {V}) -> {V} """
        for k in range(count)
    )
    type_ = S if result.endswith("#0") else "tensor<f32>"
    more = f"func.func private @g(%a: {type_}, %x: {V}) -> {V} {{ %e = stablehlo.negate %a : {type_} return %x : {V} }}"
    head = HEAD + "%h = stablehlo.constant dense<1.0e-3> : tensor<f32> "
    text = f"func.func @main(%x: {V}) -> {V} {{ {head}{loops} return %y{count} : {V} }} {more}"
    return text.replace("%y0", "%x").replace("TYPE", type_)


class Steps:
    """The number of instructions that are looked at inside of loops."""

    def __init__(self, monkeypatch):
        self.count = 0
        is_unknown = evaluator.SizeEvaluator._is_unknown

        def counting(this, ins):
            self.count += this._budget is not None
            return is_unknown(this, ins)

        monkeypatch.setattr(evaluator.SizeEvaluator, "_is_unknown", counting)

    def of(self, text, n):
        self.count = 0
        program = StableHloProgram(text)
        program.module([cyxla.Shape.array("f32", (n,))], {})
        return self.count


@pytest.mark.parametrize("result", ["%rNUMBER#1", "%rNUMBER#0"])
def test_loops_on_which_no_size_depends_are_not_followed(result, monkeypatch):
    steps = Steps(monkeypatch)
    assert steps.of(counted(4, result), 10_000) == 0


def test_loops_that_are_followed_in_vain_share_one_budget(monkeypatch):
    selector = '"stablehlo.case"(%a) ({ stablehlo.return %a : TYPE }, { stablehlo.return %a : TYPE }) : (TYPE) -> TYPE'
    text = counted(12, "%rNUMBER#0").replace(
        "stablehlo.negate %a : TYPE".replace("TYPE", S), selector.replace("TYPE", S)
    )
    steps = Steps(monkeypatch)
    assert evaluator.MAX_STEPS < steps.of(text, 100_000) < 2 * evaluator.MAX_STEPS


def test_every_loop_that_is_followed_to_its_end_has_the_whole_budget(monkeypatch):
    steps = Steps(monkeypatch)
    text = counted(12, "%rNUMBER#0").replace("%e = stablehlo.negate %a : tensor<i32>", iota("%a"))
    assert steps.of(text, 1_500) > evaluator.MAX_STEPS
