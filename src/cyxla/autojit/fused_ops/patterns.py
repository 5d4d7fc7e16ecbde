"""The fused ops, each with the compositions of plain ops that compute it.

A form is a DAG of patterns. It is applied in both directions: nodes that match it become the fused op, and a fused op
without a kernel on its device becomes the first form that has its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import pi, sqrt
from typing import Any

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.graph.graph import Node, Tensor


@dataclass(frozen=True, eq=False)
class Value:
    """An input of the fused op: any tensor."""

    name: str


@dataclass(frozen=True, eq=False)
class Number:
    """A constant of rank 0."""

    value: float


@dataclass(frozen=True, eq=False)
class ConstantAttr:
    """A constant that becomes an attribute: axes of kind ``"list(int)"``, or a number of kind ``"float"``."""

    name: str
    kind: str


@dataclass(frozen=True, eq=False)
class Apply:
    """An op with one output, applied to patterns.

    Parameters
    ----------
    ops : tuple of str
        Alternative ops; an expansion uses the first.
    inputs : tuple of patterns
        Patterns of the operands, which match in any order if the op is commutative.
    attrs : mapping
        Required values of attributes.
    given : tuple of str
        Names of the attributes that the op shares with the fused op.
    named : str
        Name of the attribute of the fused op that holds the matched op of `ops`.
    """

    ops: tuple[str, ...]
    inputs: tuple[Pattern, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    shared_attrs: tuple[str, ...] = ()
    op_attr: str = ""


@dataclass(frozen=True, eq=False)
class Either:
    """An alternative of patterns; an expansion uses the first."""

    options: tuple[Pattern, ...]


Pattern = Value | Number | ConstantAttr | Apply | Either


@dataclass
class Match:
    """The tensors, attributes and nodes that the parts of a form matched."""

    values: dict[str, Tensor] = field(default_factory=dict)
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    nodes: dict[Apply, Node] = field(default_factory=dict)
    other_nodes: tuple[Node, ...] = ()  # nodes that forward or duplicate the result of a part
    constants: tuple[Node, ...] = ()

    def copy(self) -> Match:
        """Return a copy that may be changed."""
        return Match(dict(self.values), dict(self.attrs), dict(self.nodes), self.other_nodes, self.constants)


@dataclass(frozen=True)
class Form:
    """One composition of plain ops that computes a fused op.

    Parameters
    ----------
    root : Apply
        Pattern of the last op.
    attrs : mapping
        Values of the fused op's attributes that this form implies.
    when : callable, optional
        Further conditions on a match.
    """

    root: Apply
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    condition: Callable[[Match], bool] | None = None


@dataclass(frozen=True)
class Fusion:
    """A fused op with its forms.

    Parameters
    ----------
    op : str
        Name of the op.
    inputs : tuple of str
        Names of the `Value` parts, in the order of the op's inputs.
    forms : tuple of Form
        Compositions that compute the op; the first applicable one is used for expansion.
    """

    op: str
    inputs: tuple[str, ...]
    forms: tuple[Form, ...]


# ------------------------------------------------------------------------------------------------------- ops by name


def _pattern_of(*ops: str, **attrs: Any) -> Callable[..., Apply]:
    return lambda *inputs: Apply(ops, inputs, attrs)


_add, _sub, _mul = _pattern_of("AddV2", "Add"), _pattern_of("Sub"), _pattern_of("Mul")
_div, _neg = _pattern_of("RealDiv", "Div"), _pattern_of("Neg")
_sqrt, _rsqrt, _square = _pattern_of("Sqrt"), _pattern_of("Rsqrt"), _pattern_of("Square")
_squared_difference, _power = _pattern_of("SquaredDifference"), _pattern_of("Pow")
_exp, _erf, _erfc, _tanh = _pattern_of("Exp"), _pattern_of("Erf"), _pattern_of("Erfc"), _pattern_of("Tanh")
_max, _sum, _mean = (_pattern_of(op, keep_dims=True) for op in ("Max", "Sum", "Mean"))


def _products(a: Pattern, b: Pattern, c: Pattern) -> tuple[Apply, ...]:
    """Return the product of three factors in every grouping."""
    return _mul(_mul(a, b), c), _mul(a, _mul(b, c)), _mul(_mul(a, c), b)


def fits(match: Match, name: str, onto: str) -> bool:
    """Return True if a value broadcasts to the shape of another without changing that shape."""
    small, large = match.values[name].shape.dims, match.values[onto].shape.dims
    if small is None or large is None or len(small) > len(large):
        return False
    return all(d == 1 or (d is not None and d == n) for d, n in zip(small[::-1], large[::-1], strict=False))


def _int(value: int) -> AttrValue:
    return AttrValue("int", value)


def _bool(value: bool) -> AttrValue:
    return AttrValue("bool", value)


# --------------------------------------------------------------------------------------------------------- softmax


def _softmax_fusion() -> Fusion:
    x, axes = Value("logits"), ConstantAttr("axes", "list(int)")
    forms = []
    for stable in (True, False):
        e = _exp(_sub(x, _max(x, axes))) if stable else _exp(x)
        total = _sum(e, axes)
        for root in (_div(e, total), _mul(e, _pattern_of("Reciprocal", "Inv")(total))):
            forms.append(Form(root, {"stable": _bool(stable)}))
    return Fusion("_FusedSoftmax", ("logits",), tuple(forms))


# ------------------------------------------------------------------------------------------------- normalisation

_NUM_SCALES = {1: {"num_scales": _int(1)}, 0: {"num_scales": _int(0)}}


def _normal_forms(x: Pattern, mean: Pattern, variance: Pattern, scale: Value, offset: Value) -> list[tuple[Apply, int]]:
    """Return forms of ``(x - mean) / sqrt(variance + epsilon) * scale + offset``, each with its number of scales."""
    stabilized = _add(variance, ConstantAttr("epsilon", "float"))
    inverse, deviation = _rsqrt(stabilized), _sqrt(stabilized)
    centred = _sub(x, mean)
    factor = _mul(inverse, scale)
    return [
        (_add(_mul(x, factor), _sub(offset, _mul(mean, factor))), 1),
        (_add(_mul(x, factor), _add(_mul(_neg(mean), factor), offset)), 1),
        (_add(_mul(centred, factor), offset), 1),
        (_add(_mul(_mul(centred, inverse), scale), offset), 1),
        (_add(_mul(_mul(centred, scale), inverse), offset), 1),
        (_add(_mul(_div(centred, deviation), scale), offset), 1),
        (_add(_div(_mul(centred, scale), deviation), offset), 1),
        (_add(_mul(x, inverse), _sub(offset, _mul(mean, inverse))), 0),
        (_add(_mul(x, inverse), _add(_mul(_neg(mean), inverse), offset)), 0),
        (_add(_mul(centred, inverse), offset), 0),
        (_add(_div(centred, deviation), offset), 0),
    ]


def _layer_norm_fusion() -> Fusion:
    x, scale, offset, axes = Value("x"), Value("scale"), Value("offset"), ConstantAttr("axes", "list(int)")
    mean = _mean(x, axes)
    centred = _sub(x, mean)
    squares = Either((_squared_difference(x, mean), _square(centred), _mul(centred, centred)))
    variance = _mean(squares, axes)
    affine = [root for root, scales in _normal_forms(x, mean, variance, scale, offset) if scales]
    stabilized = _add(variance, ConstantAttr("epsilon", "float"))
    unscaled = (_mul(centred, _rsqrt(stabilized)), _div(centred, _sqrt(stabilized)))
    forms = [Form(root, {"num_affine": _int(2)}, _affine_fits) for root in affine]
    forms += [Form(root, {"num_affine": _int(0)}) for root in unscaled]
    return Fusion("_FusedLayerNorm", ("x", "scale", "offset"), tuple(forms))


def _affine_fits(match: Match) -> bool:
    return fits(match, "scale", "x") and fits(match, "offset", "x")


def _batch_norm_fusion() -> Fusion:
    x, mean, variance, scale, offset = (Value(name) for name in ("x", "mean", "variance", "scale", "offset"))
    forms = tuple(
        Form(root, _NUM_SCALES[scales], _moments_fit)
        for root, scales in _normal_forms(x, mean, variance, scale, offset)
    )
    return Fusion("_FusedBatchNorm", ("x", "mean", "variance", "offset", "scale"), forms)


def _moments_fit(match: Match) -> bool:
    return all(fits(match, name, "x") for name in match.values if name != "x")


# ---------------------------------------------------------------------------------------------------------- GELU


def _gelu_fusion() -> Fusion:
    x, half = Value("features"), Number(0.5)
    factors: tuple[Pattern, ...] = (_exact_factor(x), _tanh_factor(x))
    forms = (
        Form(root, {"approximate": _bool(bool(k))})
        for k, factor in enumerate(factors)
        for root in _products(half, x, factor)
    )
    return Fusion("_FusedGelu", ("features",), tuple(forms))


def _exact_factor(x: Value) -> Either:
    """Return ``1 + erf(x / sqrt(2))`` or ``erfc(-x / sqrt(2))``."""
    scaled = _div(x, Number(sqrt(2))), _mul(x, Number(sqrt(0.5)))
    minus = (
        _mul(_neg(x), Number(sqrt(0.5))), _div(_neg(x), Number(sqrt(2))), _neg(scaled[0]), _neg(scaled[1]),
        _mul(x, Number(-sqrt(0.5))),
    )  # fmt: skip
    return Either((_add(Number(1.0), _erf(Either(scaled))), _erfc(Either(minus))))


def _tanh_factor(x: Value) -> Apply:
    """Return ``1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))``."""
    coefficient, root, square = Number(0.044715), Number(sqrt(2 / pi)), Either((_square(x), _mul(x, x)))
    cube = Either((_power(x, Number(3.0)), _mul(square, x)))
    term = Either(
        (
            _mul(coefficient, cube),
            _mul(_mul(coefficient, x), square),
            _mul(_mul(_mul(coefficient, x), x), x),
            _mul(_mul(coefficient, square), x),
        )
    )
    polynomial = _add(Number(1.0), _mul(coefficient, square))
    return _add(Number(1.0), _tanh(Either((_mul(root, _add(x, term)), *_products(root, x, polynomial)))))


# ------------------------------------------------------------------------ matrix products and convolutions with a bias

_ACTIVATIONS = ("Relu", "Relu6", "Elu", "Selu", "Tanh", "Sigmoid", "Softplus")
_CONVOLUTION = ("strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations")


def _bias_fusion(
    op: str, product: Apply, biased_products: tuple[tuple[Apply, Callable[[Match], bool] | None], ...]
) -> Fusion:
    """Return a fusion of a product and a bias, followed by an activation or none."""
    forms = []
    for biased, condition in biased_products:
        leaky = Apply(("LeakyRelu",), (biased,), shared_attrs=("alpha",))
        forms += [
            Form(Apply(_ACTIVATIONS, (biased,), op_attr="activation"), {}, condition),
            Form(leaky, {"activation": AttrValue("string", "LeakyRelu")}, condition),
            Form(biased, {"activation": AttrValue("string", "")}, condition),
        ]
    names = tuple(part.name for part in product.inputs if isinstance(part, Value))
    return Fusion(op, (*names, "bias"), tuple(forms))


def _bias_check(product: Apply) -> Callable[[Match], bool]:
    """Return a check that the bias has rank 1 and the size of the product's last dimension."""

    def check(match: Match) -> bool:
        bias, dims = match.values["bias"].shape.dims, match.nodes[product].output_shapes[0].dims
        return bool(bias) and bool(dims) and len(bias or ()) == 1 and bias[0] is not None and bias[0] == dims[-1]  # type: ignore[index]

    return check


def _convolution_fusion() -> Fusion:
    product = Apply(("Conv2D",), (Value("input"), Value("filter")), shared_attrs=_CONVOLUTION)
    bias, is_row = Value("bias"), _bias_check(product)

    def is_channels_last(match: Match) -> bool:
        return match.attrs["data_format"].value == "NHWC" and is_row(match)

    biased_products = (
        (Apply(("BiasAdd",), (product, bias), shared_attrs=("data_format",)), None),
        (_add(product, bias), is_channels_last),
    )
    return _bias_fusion("_FusedConv2DBiasActivation", product, biased_products)


def _matmul_fusion() -> Fusion:
    product = Apply(
        ("MatMul",), (Value("a"), Value("b")), {"grad_a": False, "grad_b": False}, ("transpose_a", "transpose_b")
    )
    bias = Value("bias")
    biased_products = (
        (Apply(("BiasAdd",), (product, bias), {"data_format": "NHWC"}), None),
        (_add(product, bias), _bias_check(product)),
    )
    return _bias_fusion("_FusedMatMulBiasActivation", product, biased_products)


@lru_cache(maxsize=1)
def fusions() -> tuple[Fusion, ...]:
    """Return all fused ops, in the order in which they are tried at a node."""
    return (
        _softmax_fusion(),
        _layer_norm_fusion(),
        _batch_norm_fusion(),
        _gelu_fusion(),
        _convolution_fusion(),
        _matmul_fusion(),
    )
