"""Strings."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import reduction_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN
from cyxla.errors import InvalidArgumentError


def _replace_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(1), 0)
    c.with_rank(c.input(2), 0)
    c.set_output(0, c.input(0))


def _format_shape(c: InferenceContext) -> None:
    """Check that the template has one placeholder per input."""
    template, placeholder = c.attr("template"), c.attr("placeholder")
    count = template.count(placeholder) if placeholder else 0
    if count != c.num_inputs:
        raise InvalidArgumentError(
            f"StringFormat: the template {template!r} has {count} placeholders for {c.num_inputs} inputs",
            hint=f"write {placeholder!r} once for each input",
        )
    c.set_output(0, SCALAR)


def _join_shape(c: InferenceContext) -> None:
    """Merge the shapes; scalars broadcast."""
    shapes = [c.input(i) for i in range(c.num_inputs)]
    if all(shape.rank == 0 for shape in shapes):
        c.set_output(0, SCALAR)
        return
    merged = UNKNOWN
    for shape in shapes:
        if shape.rank != 0:
            merged = c.merge(merged, shape)
    c.set_output(0, merged)


op("AsString", "input: T -> output: string", "T: {realnumbertype, complex64, complex128, bool, variant, string}",
    "precision: int = -1", "scientific: bool = false", "shortest: bool = false", "width: int = -1", "fill: string = ''",
    shape=unchanged_shape, doc="Convert numbers to strings.",
)  # fmt: skip
op("ReduceJoin", "inputs: string, reduction_indices: int32 -> output: string", "keep_dims: bool = false",
    "separator: string = ''", shape=reduction_shape, doc="Join strings along some axes.",
)  # fmt: skip
op("RegexReplace", "input: string, pattern: string, rewrite: string -> output: string", "replace_global: bool = true",
    shape=_replace_shape, doc="Replace matches of a pattern in strings.",
)  # fmt: skip
op("StaticRegexFullMatch", "input: string -> output: bool", "pattern: string", shape=unchanged_shape,
    doc="Test if whole strings match a pattern.",
)  # fmt: skip
op("StringFormat", "inputs: T -> output: string", "T: list(type) >= 0", "template: string = '%s'",
    "placeholder: string = '%s'", "summarize: int = 3", shape=_format_shape,
    doc="Fill the placeholders of a template with tensors as text.",
)  # fmt: skip
op("StringJoin", "inputs: N * string -> output: string", "N: int >= 0", "separator: string = ''", shape=_join_shape,
    doc="Join strings element by element.",
)  # fmt: skip
