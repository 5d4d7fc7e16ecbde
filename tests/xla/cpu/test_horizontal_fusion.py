"""Small kernels that do not depend on each other are one, and compute the same."""

import pytest
from support.hlo.differential import agree

from cyxla.xla.cpu.kernel.kernel import Kernel, Step, Value
from cyxla.xla.cpu.plan.horizontal_fusion import MAX_PARTS, fuse_small_kernels, fuse_steps, refusal
from cyxla.xla.cpu.plan.nodes import KernelNode
from cyxla.xla.hlo import parse_module

_MODULE = parse_module("HloModule m\nENTRY e { ROOT x = f32[8] parameter(0) }")


def value(size: int = 8) -> Value:
    text = f"HloModule m\nENTRY e {{ ROOT x = f32[{size}] parameter(0) }}"
    return Value(parse_module(text).entry.root)


def node(reads: list[Value], writes: list[Value], text: str = "static int KERNEL;", **more) -> KernelNode:
    kernel = Kernel(text, **{k: v for k, v in more.items() if k in ("tasks", "cost", "scratch")})
    rest = {k: v for k, v in more.items() if k not in ("tasks", "cost", "scratch")}
    return KernelNode(Step(kernel, tuple(reads), tuple(writes), **rest))


def test_dependent_kernels_keep_their_order():
    x, a, b, c, d = (value() for _ in range(5))
    nodes = [node([x], [a]), node([x], [b]), node([a], [c]), node([b, x], [d])]
    reasons = []
    found = fuse_small_kernels(nodes, reasons)
    assert [n.step.writes for n in found] == [(a, b), (c, d)]
    assert reasons == []
    fuse_small_kernels([node([x], [a]), node([a], [b])], reasons)
    assert [r.reason for r in reasons] == ["it depends on the small kernels before it"]


def test_kernels_pass_independent_ones():
    x, a, big, b = value(), value(), value(5000), value()
    found = fuse_small_kernels([node([x], [a]), node([a], [big]), node([x], [b])], [])
    assert [n.step.writes for n in found] == [(a, b), (big,)]


def test_not_too_many():
    x = value()
    outs = [value() for _ in range(2 * MAX_PARTS + 1)]
    reasons = []
    found = fuse_small_kernels([node([x], [o]) for o in outs], reasons)
    assert [len(n.step.writes) for n in found] == [MAX_PARTS, MAX_PARTS, 1]
    assert [r.reason for r in reasons] == [f"the kernel before it has {MAX_PARTS} parts"]


@pytest.mark.parametrize(
    "more, why",
    [
        ({}, None), ({"tasks": 2}, "several tasks"), ({"scratch": 64}, "scratch buffer"),
        ({"context": True}, "cancellation"), ({"state": True}, "random numbers"),
        ({"functions": ("dpotrf",)}, "calls functions"), ({"must_alias": ((0, 0),)}, "in place"),
    ],
)  # fmt: skip
def test_reasons(more, why):
    found = refusal(node([value()], [value()], **more))
    assert found is None if why is None else why in str(found)
    assert "more than 4096 bytes" in str(refusal(node([value()], [value(2000)])))


def test_places_of_arrays():
    """Parts run in place only if no other part reads their operand; equal parts are emitted once."""
    x, y, a, b, c = (value() for _ in range(5))
    parts = [node([x, y], [a], in_place=((0, 0),)), node([x], [b], in_place=((0, 0),)), node([y, x], [c])]
    step = fuse_steps([p.step for p in parts])
    assert step.reads == (x, y)
    assert step.writes == (a, b, c)
    assert step.in_place == ()
    assert step.kernel.text.count("static int") == 1
    alone = fuse_steps([node([x], [a], in_place=((0, 0),)).step, node([y], [b]).step])
    assert alone.in_place == ((0, 0),)


def updates(count: int, dtype: str = "f32") -> str:
    """Parameters of different sizes, each changed by its own gradient."""
    lines, roots = [], []
    for k in range(count):
        t = f"{dtype}[{1 + 7 * k}]"
        lines += [
            f"p{k} = {t} parameter({2 * k})",
            f"g{k} = {t} parameter({2 * k + 1})",
            f"m{k} = {t} multiply(p{k}, g{k})",
        ]
        lines += [f"s{k} = {t} sort(m{k}), dimensions={{0}}, to_apply=less", f"n{k} = {t} subtract(p{k}, s{k})"]
        roots.append((t, f"n{k}"))
    less = (
        f"less {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}"
    )
    types, names = (", ".join(part) for part in zip(*roots, strict=True))
    return f"HloModule m\n{less}\nENTRY e {{\n" + "\n".join(lines) + f"\nROOT t = ({types}) tuple({names}) }}"


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "f64"])
@pytest.mark.parametrize("count", [2, 9])
def test_updates_of_many_parameters(count, dtype):
    executable = agree(updates(count, dtype))
    assert executable.explain().count("bundle") >= 1
