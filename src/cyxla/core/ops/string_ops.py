"""Strings."""

from cyxla.core.framework.op import op

op("AsString", "input: T -> output: string", "T: {realnumbertype, complex64, complex128, bool, variant, string}",
    "precision: int = -1", "scientific: bool = false", "shortest: bool = false", "width: int = -1", "fill: string = ''",
    shape=None,
)  # fmt: skip
op("ReduceJoin", "inputs: string, reduction_indices: int32 -> output: string", "keep_dims: bool = false",
    "separator: string = ''", shape=None,
)  # fmt: skip
op("RegexReplace", "input: string, pattern: string, rewrite: string -> output: string", "replace_global: bool = true",
    shape=None,
)  # fmt: skip
op("StaticRegexFullMatch", "input: string -> output: bool", "pattern: string", shape=None)
op("StringFormat", "inputs: T -> output: string", "T: list(type) >= 0", "template: string = '%s'",
    "placeholder: string = '%s'", "summarize: int = 3", shape=None,
)  # fmt: skip
op("StringJoin", "inputs: N * string -> output: string", "N: int >= 0", "separator: string = ''", shape=None)
