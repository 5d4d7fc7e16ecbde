"""Every kind of convolution, alone and with an epilogue, agrees with the interpreter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import flat
from support.hlo.programs import assert_same
from support.strategies import random_array

import cyxla
from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.cpu.convolution.tiles import Blocks, panels
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, infer_shape
from cyxla.xla.hlo.attributes import ConvDims, WindowDim
from cyxla.xla.passes.expand.convolution import channels_last, images_last, is_gradient, is_packed
from cyxla.xla.passes.specialise import pack_convolution

F32 = ElementType.F32


@dataclass
class Convolution:
    """Sizes of one, by their meaning; `labels` says in which order the dimensions lie."""

    batch: int
    features: int  # of the input, in one group
    result: int  # features of the result, in one group
    space: tuple[int, ...]
    window: tuple[WindowDim, ...]
    groups: int = 1
    by_batch: bool = False
    dtype: ElementType = F32
    labels: ConvDims | None = None
    after: bool = False  # with a bias, a residual and a maximum behind it
    attrs: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.labels = self.labels or channels_last(len(self.space))
        self.attrs = {
            "window": self.window,
            "dim_labels": self.labels,
            "feature_group_count": 1 if self.by_batch else self.groups,
            "batch_group_count": self.groups if self.by_batch else 1,
        }

    def operands(self) -> list[Shape]:
        d = self.labels
        rank = len(self.space) + 2
        x, w = [0] * rank, [0] * rank
        x[d.input_batch] = self.batch * (self.groups if self.by_batch else 1)
        x[d.input_feature] = self.features * (1 if self.by_batch else self.groups)
        w[d.kernel_input_feature], w[d.kernel_output_feature] = self.features, self.result * self.groups
        for place, n in zip(d.input_spatial, self.space, strict=True):
            x[place] = n
        for place, dim in zip(d.kernel_spatial, self.window, strict=True):
            w[place] = dim.size
        return [Shape.array(self.dtype, x), Shape.array(self.dtype, w)]


def module_of(cases: list[Convolution]) -> HloModule:
    """One program of several convolutions with parameters of their own."""
    module = HloModule("convolutions")
    module.entry = entry = module.new_computation("main")

    def parameter(shape: Shape) -> Any:
        return entry.add("parameter", attrs={"parameter_number": len(entry.parameters)}, shape=shape)

    results = []
    for case in cases:
        operands = [parameter(s) for s in case.operands()]
        result = entry.add("convolution", operands, case.attrs, shape=infer_shape("convolution", operands, case.attrs))
        if case.after:
            feature = case.labels.output_feature
            bias = parameter(Shape.array(case.dtype, [result.shape.dims[feature]]))
            spread = entry.add("broadcast", [bias], {"dimensions": (feature,)}, shape=result.shape)
            total = entry.add("add", [result, spread], shape=result.shape)
            other = parameter(result.shape)
            result = entry.add(
                "maximum", [entry.add("add", [total, other], shape=result.shape), other], shape=result.shape
            )
        results.append(result)
    entry.root = entry.add("tuple", results, shape=Shape.tuple([r.shape for r in results]))
    return module


def check(cases: list[Convolution], seed: int = 0, poison: tuple[float, ...] = ()) -> None:
    module = module_of(cases)
    args = [random_array(p.shape, seed + k, 0.0) for k, p in enumerate(module.parameters)]
    weights = [i.operands[1].attrs["parameter_number"] for i in module.entry.instructions if i.opcode == "convolution"]
    generator = np.random.default_rng(seed)
    for k in weights if poison else ():
        flat_weights = args[k].reshape(-1)
        if not flat_weights.size or flat_weights.dtype.kind != "f":
            continue
        flat_weights[generator.integers(0, flat_weights.size, len(poison))] = poison
    compiled = cyxla.compile(module.to_text())
    for got, want, case in zip(flat(compiled(*args)), flat(evaluate(module, args)), cases, strict=True):
        assert_same(np.asarray(got), np.asarray(want), case.dtype, 256, 1.0)


def same(n: int, **more: Any) -> WindowDim:
    return WindowDim(n, padding_low=n // 2, padding_high=(n - 1) // 2, **more)


# --- one of each form -------------------------------------------------------------------------------------------------

K3, K1 = (same(3), same(3)), (WindowDim(1), WindowDim(1))
LAST2 = images_last(2)
NCHW = ConvDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
CASES = {
    "tiles": Convolution(2, 16, 64, (7, 7), K3),
    "tiles of a cut row": Convolution(1, 9, 83, (5, 9), K3),
    "tiles of one vector": Convolution(3, 8, 16, (4, 3), K3),
    "tiles by blocks of taps": Convolution(1, 130, 32, (6, 5), K3),
    "tiles by blocks of features": Convolution(1, 1600, 48, (3, 4), K1),
    "blocks, cut row": Convolution(1, 200, 36, (4, 5), K3),
    "many places": Convolution(1, 16, 16, (41, 43), K3),
    "groups": Convolution(2, 12, 32, (6, 6), K3, groups=3),
    "groups of images": Convolution(2, 12, 32, (6, 6), K3, groups=3, by_batch=True),
    "strides": Convolution(2, 16, 20, (9, 11), (same(3, stride=2), same(3, stride=3))),
    "spread": Convolution(1, 16, 24, (5, 5), (same(3, base_dilation=2), same(4, base_dilation=3, window_dilation=2))),
    "reversed": Convolution(1, 16, 24, (5, 5), (same(3, window_reversal=True), same(2, window_reversal=True))),
    "cut input": Convolution(1, 16, 16, (8, 8), (WindowDim(3, 1, -1, 2), WindowDim(2, 1, 3, -2))),
    "rows": Convolution(1, 3, 64, (15, 17), (same(7, stride=2), same(7, stride=2))),
    "depthwise": Convolution(2, 1, 1, (7, 9), K3, groups=40),
    "depthwise, two each": Convolution(1, 1, 2, (7, 9), K3, groups=20),
    "no space": Convolution(5, 20, 30, (), ()),
    "one dimension": Convolution(2, 10, 33, (19,), (same(5),)),
    "three dimensions": Convolution(1, 8, 16, (4, 5, 6), (same(3), same(2), same(3))),
    "channels first": Convolution(2, 16, 33, (6, 7), K3, labels=NCHW),
    "gradient": Convolution(20, 3, 64, (12, 12), (WindowDim(12, 1, 1, 1),) * 2, labels=LAST2),
    "gradient, cut row": Convolution(11, 2, 37, (9, 10), (WindowDim(9, 1, 1, 1), WindowDim(10, 1, 2, 1)), labels=LAST2),
    "gradient with strides": Convolution(
        9, 2, 16, (15, 15), (WindowDim(8, 1, 1, 0, 2), WindowDim(7, 1, 1, 1, 2)), labels=LAST2
    ),
    "gradient, spread": Convolution(
        9, 2, 16, (8, 8), (WindowDim(14, 1, 1, 1, 1, 2), WindowDim(7, 1, 1, 1, 2, 3)), labels=LAST2
    ),
    "gradient, reversed": Convolution(
        5, 2, 20, (9, 9), (WindowDim(9, 1, 1, 1, window_reversal=True),) * 2, labels=LAST2
    ),
    "gradient, groups": Convolution(6, 2, 18, (9, 9), (WindowDim(9, 1, 1, 1),) * 2, 3, labels=LAST2),
    "gradient, groups of images": Convolution(6, 2, 18, (9, 9), (WindowDim(9, 1, 1, 1),) * 2, 3, True, labels=LAST2),
    "gradient of depthwise": Convolution(1, 2, 1, (9, 9), (WindowDim(9, 1, 1, 1),) * 2, 37, True, labels=LAST2),
    "gradient, many results": Convolution(200, 2, 400, (5, 5), (WindowDim(5, 1, 1, 1),) * 2, labels=LAST2),
    "gradient, one dimension": Convolution(7, 3, 16, (30,), (WindowDim(30, 1, 1, 1),), labels=images_last(1)),
}
TYPES = [ElementType.F32, ElementType.F64]


@pytest.mark.parametrize("after, dtype", [(False, TYPES[1]), (True, TYPES[0])], ids=["alone", "with an epilogue"])
def test_forms(after, dtype):
    """The other types are compared in test_prebuilt_or_not."""
    cases = [Convolution(**{**_fields(c), "after": after, "dtype": dtype}) for c in CASES.values()]
    check(cases)


LEAVING = (  # forms whose windows leave the input
    "tiles", "tiles of a cut row", "tiles by blocks of taps", "groups of images", "strides", "spread", "reversed",
    "cut input", "rows", "depthwise", "one dimension", "three dimensions", "gradient",
)  # fmt: skip


@pytest.mark.parametrize("prebuilt, after, dtype", [("0", False, TYPES[0]), ("1", True, TYPES[1])])
def test_padding_adds_nothing_for_any_weights(prebuilt, after, dtype, monkeypatch):
    monkeypatch.setenv("CYXLA_PREBUILT", prebuilt)
    cases = [Convolution(**{**_fields(CASES[n]), "after": after, "dtype": dtype}) for n in LEAVING]
    check(cases, poison=(np.nan, np.inf, -np.inf))


@pytest.mark.parametrize("isa, after, dtype, names", [
    ("", False, TYPES[0], list(CASES)), ("", True, TYPES[1], list(CASES)),
    ("x86-64-v3", False, TYPES[1], list(CASES)[::2]), ("x86-64-v1", False, TYPES[0], list(CASES)[1::2]),
])  # fmt: skip
@pytest.mark.slow_after(1)
def test_prebuilt_or_not(isa, after, dtype, names, monkeypatch):
    """Sizes that are arguments at run time change no bit."""
    cases = [Convolution(**{**_fields(CASES[name]), "after": after, "dtype": dtype}) for name in names]
    text = module_of(cases).to_text()
    monkeypatch.setenv("CYXLA_ISA", isa)
    made = []
    for setting in "01":
        monkeypatch.setenv("CYXLA_PREBUILT", setting)
        made.append(cyxla.compile(text, cache=False))
    assert made[1].c_source.count("return ((cyx_status") >= (12 if len(names) == len(CASES) else 4)
    generator = np.random.default_rng(3)  # no NaN, whose sign is up to the compiler
    arguments = [generator.standard_normal(s.dims).astype(s.dtype.numpy_dtype) for s in made[0].inputs]
    results = [run(*arguments) for run in made]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    if not isa:
        for got, want in zip(results[0], evaluate(cyxla.hlo.parse_module(text), arguments), strict=True):
            assert_same(got, want, dtype, 256, 1.0)


def test_epilogues_are_fused():
    cases = [Convolution(**{**_fields(c), "after": True}) for n, c in CASES.items() if n != "channels first"]
    kernels = cyxla.compile(module_of(cases).to_text()).explanation().kernels
    assert {k.kind for k in kernels} <= {"convolution", "bundle"}  # small ones are bundled: one call of several kernels
    for kernel in kernels:
        opcodes = [text.split()[0] for text in kernel.instructions]
        assert opcodes == ["convolution", "broadcast", "add", "add", "maximum"] * opcodes.count("convolution")


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("dtype", ["bf16", "f16", "s8", "s32", "u64", "c64", "c128"])
def test_types(dtype):
    names = (
        "tiles",
        "groups",
        "strides",
        "reversed",
        "depthwise",
        "one dimension",
        "channels first",
        "gradient, groups",
    )
    check([Convolution(**{**_fields(CASES[n]), "after": k % 2 == 0 and dtype[0] != "c", "dtype": element_type(dtype)})
           for k, n in enumerate(names)])  # fmt: skip


def _fields(case: Convolution) -> dict[str, Any]:
    return {name: value for name, value in vars(case).items() if name != "attrs"}


def test_gradients_have_their_own_form():
    module = module_of([c for name, c in CASES.items() if name.startswith("gradient")])
    assert all(is_gradient(i, F32) for i in module.entry.instructions if i.opcode == "convolution")
    module = module_of([c for name, c in CASES.items() if not name.startswith("gradient")])
    assert not any(is_gradient(i, F32) for i in module.entry.instructions if i.opcode == "convolution")


# --- weights in panels ------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("features", [64, 96, 128, 192, 80])
def test_packed_weights(features, dtype):
    cases = [
        Convolution(2, 16, features, (5, 6), K3, dtype=dtype),
        Convolution(1, 3, features, (), (), dtype=dtype),
        Convolution(1, 300, features, (4,), (same(3, stride=2, window_reversal=True),), dtype=dtype, after=True),
    ]
    module = module_of(cases)
    args = [random_array(p.shape, k, 0.0) for k, p in enumerate(module.parameters)]
    want = flat(evaluate(module, args))
    packed = cyxla.hlo.parse_module(module.to_text())
    assert pack_convolution.run(packed) == (features * dtype.itemsize > 256 or features == 80)
    wide = [i for i in packed.entry.instructions if i.opcode == "convolution" and is_packed(i) and i.users]
    assert len(wide) == (3 if features * dtype.itemsize > 256 or features == 80 else 0)
    for how in (evaluate(packed, args), cyxla.compile(packed.to_text())(*args)):
        for got, expected in zip(flat(how), want, strict=True):
            assert_same(np.asarray(got), expected, dtype, 256, 1.0)


# --- any sizes --------------------------------------------------------------------------------------------------------


@st.composite
def windows(draw: st.DrawFn, size: int) -> WindowDim:
    """A window over so many elements that has one place at least."""
    n = draw(st.integers(1, 4))
    dim = WindowDim(
        n, draw(st.integers(1, 3)), draw(st.integers(-1, 3)), draw(st.integers(-1, 3)), draw(st.integers(1, 2)),
        draw(st.integers(1, 3)), draw(st.booleans()),
    )  # fmt: skip
    spread = max((size - 1) * dim.base_dilation + 1, 0)
    short = (n - 1) * dim.window_dilation + 1 - (spread + dim.padding_low + dim.padding_high)
    return dim._replace(padding_high=dim.padding_high + max(short, 0))


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    rank = draw(st.integers(0, 3))
    space = tuple(draw(st.integers(1, 9 if rank < 3 else 5)) for _ in range(rank))
    labels = channels_last(rank)
    if draw(st.booleans()):
        orders = [draw(st.permutations(range(rank + 2))) for _ in range(3)]
        labels = ConvDims(*(part for o in orders for part in (o[0], o[1], tuple(o[2:]))))
    return Convolution(
        draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 3, 7, 8, 9, 17, 40])),
        draw(st.sampled_from([1, 3, 8, 15, 16, 19, 33, 64, 70])), space, tuple(draw(windows(n)) for n in space),
        draw(st.sampled_from([1, 1, 1, 2, 5])), draw(st.booleans()),
        draw(st.sampled_from([ElementType.F32, ElementType.F32, ElementType.F64, ElementType.S32])), labels,
        draw(st.booleans()),
    )  # fmt: skip


POISON = st.sampled_from([(), (np.nan, np.inf), (-np.inf,)])  # among the weights


@pytest.mark.slow
@given(st.lists(convolutions(), min_size=1, max_size=6), st.integers(0, 1000), POISON)
@settings(max_examples=15, deadline=None)
def test_any_convolution(cases, seed, poison):
    check(cases, seed, poison)


# --- how the work is cut ----------------------------------------------------------------------------------------------


@given(st.integers(16, 700), st.sampled_from([4, 8, 16]), st.integers(2, 4))
def test_panels_cover_the_features_once(features, lanes, widest):
    written = [
        p.first + k * p.vectors * lanes + j
        for p in panels(features, lanes, widest)
        for k in range(p.count)
        for j in range(p.skip, p.vectors * lanes)
    ]
    assert sorted(written) == list(range(features))


@given(st.integers(1, 400), st.integers(1, 5000))
def test_blocks_cover_the_products(taps, depth):
    b = Blocks.of(taps, depth)
    slices = -(-depth // b.depth)
    assert b.count == -(-taps // b.taps) * slices
    assert b.taps == 1 or b.depth == depth
