"""Writers of opcodes as StableHLO: a table, and functions for those with attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.records import dataclass
from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import ConvDims, ReplicaGroups, Window
from cyxla.xla.hlo.opcode import OPCODES
from cyxla.xla.stablehlo.elementwise import BINARY, UNARY
from cyxla.xla.stablehlo.write_values import (
    brackets,
    dense,
    flag,
    flags,
    ints,
    number,
    quoted,
    record,
    rows,
    type_of,
    word,
)
from cyxla.xla.stablehlo.writer import (
    WRITERS,
    Attributes,
    Block,
    Region,
    Value,
    Write,
    leaves,
    result_types,
    shapes_of,
    write_stablehlo,
)

__all__ = ["WRITERS", "write_stablehlo"]


def writes(*opcodes: str) -> Callable[[Write], Write]:
    """Register a writer of opcodes."""

    def register(write: Write) -> Write:
        WRITERS.update(dict.fromkeys(opcodes, write))
        return write

    return register


def _plain(name: str, attributes: Callable[[Instruction], Attributes] | None = None) -> Write:
    """Return the writer of an operation with attributes of its instruction only."""
    return lambda block, ins: block.emit(name, ins, attributes(ins) if attributes is not None else None)


# Elementwise


def _short(name: str) -> Write:
    """Return a writer in the pretty form, for operations with one type."""

    def write(block: Block, ins: Instruction) -> Value:
        if any(o.shape.logical is not ins.shape.logical for o in ins.operands):
            return block.emit(name, ins)
        kind = type_of(ins.shape)
        types = f"{', '.join([kind] * len(ins.operands))} -> {kind}" if name.startswith("chlo.") else kind
        return block.assign(f"{name} {', '.join(block.operands(ins))} : {types}", ins.shape)

    return write


for _name, _opcode in (UNARY | BINARY).items():
    if _opcode != "copy":
        _dialect = OPCODES[_opcode].dialect
        WRITERS[_opcode] = _short(f"{_dialect}.{_name}") if _dialect != "mhlo" else _plain(f"{_dialect}.{_name}")


@writes("copy")
def _copy(block: Block, ins: Instruction) -> Value:
    return block.values[ins.operands[0]]


@writes("constant")
def _constant(block: Block, ins: Instruction) -> Value:
    literal = ins.attrs["literal"]
    if isinstance(literal, Literal) and literal.is_tuple:
        return [_literal(block, e) for e in literal.elements]
    return _literal(block, literal)


def _literal(block: Block, literal: Literal) -> Value:
    if literal.is_tuple:
        return [_literal(block, e) for e in literal.elements]
    return block.assign(f"stablehlo.constant {dense(literal)}", literal.shape)


def _compare(ins: Instruction) -> Attributes:
    dtype = ins.operands[0].shape.dtype
    inexact = dtype.is_float or dtype.is_complex
    kind = ins.attrs["type"] or ("FLOAT" if inexact else "SIGNED" if dtype.is_signed else "UNSIGNED")
    return {
        "comparison_direction": word("comparison_direction", ins.attrs["direction"]),
        "compare_type": word("comparison_type", kind),
    }


def _reduce_precision(ins: Instruction) -> Attributes:
    return {k: number(ins.attrs[k], 32) for k in ("exponent_bits", "mantissa_bits")}


@writes("bitcast-convert")
def _bitcast_convert(block: Block, ins: Instruction) -> Value:
    """Write bitcast_convert; a pred is a byte in HLO and one bit in StableHLO, so its byte is a u8."""
    value, source, target = block.values[ins.operands[0]], ins.operands[0].shape.logical, ins.shape.logical
    if (source.dtype is ElementType.PRED) is (target.dtype is ElementType.PRED):
        return block.emit("stablehlo.bitcast_convert", ins)
    byte = (source if source.dtype is ElementType.PRED else target).with_dtype(ElementType.U8)
    steps = [("convert", byte), ("bitcast_convert", target)] if source.dtype is ElementType.PRED else [
        ("bitcast_convert", byte), ("convert", target)
    ]  # fmt: skip
    for name, shape in steps:
        if shape is not source:
            value = block.assign(f"stablehlo.{name} {value} : ({type_of(source)}) -> {type_of(shape)}", shape)
        source = shape
    return value


@writes("bitcast")
def _bitcast(block: Block, ins: Instruction) -> Value:
    """Write a bitcast as transposes and a bitcast_convert between the memory orders of operand and result."""
    operand, result = ins.operands[0].shape, ins.shape
    had, gets = operand.dtype, result.dtype
    if operand.is_dynamic or result.is_dynamic or had.is_complex != gets.is_complex:
        raise UnimplementedError(f"a bitcast of {operand} to {result} has no form in StableHLO", where=repr(ins))
    steps = _Steps(block, ins, leaves(block.values[ins.operands[0]])[0], operand.logical)
    steps.transpose(operand.minor_to_major[::-1])
    if had is not gets:
        count = min(operand.size, result.size)
        steps.reshape([count, *_ratio(gets, had)])
        steps.emit_step("bitcast_convert", Shape.array(gets, [count, *_ratio(had, gets)]))
    order = result.minor_to_major[::-1]
    steps.reshape([result.dims[d] for d in order])
    steps.transpose(tuple(np.argsort(order).tolist()))
    return steps.name


def _ratio(wide: ElementType, narrow: ElementType) -> list[int]:
    """Return the extra dimension of elements that are parts of wider ones."""
    return [wide.bits // narrow.bits] if wide.bits > narrow.bits else []


@dataclass
class _Steps:
    """Several operations that implement an instruction with one operand."""

    block: Block
    ins: Instruction
    name: str
    shape: Shape

    def emit_step(self, name: str, result_shape: Shape, attributes: Attributes | None = None) -> None:
        operands = [(self.name, self.shape)]
        value = self.block.emit(f"stablehlo.{name}", self.ins, attributes, operands=operands, result=result_shape)
        self.name, self.shape = leaves(value)[0], result_shape

    def reshape(self, dims: Sequence[int]) -> None:
        if tuple(dims) != self.shape.dims:
            self.emit_step("reshape", self.shape.with_dims(dims))

    def transpose(self, order: tuple[int, ...]) -> None:
        if order != tuple(range(len(order))):
            self.emit_step(
                "transpose", self.shape.with_dims([self.shape.dims[d] for d in order]), {"permutation": ints(order)}
            )


# Movement


def _slice(ins: Instruction) -> Attributes:
    ranges = ins.attrs["slice"]
    names = {"start_indices": "start", "limit_indices": "limit", "strides": "stride"}
    return {name: ints(getattr(r, part) for r in ranges) for name, part in names.items()}


def _pad(ins: Instruction) -> Attributes:
    parts = ins.attrs["padding"]
    names = {"edge_padding_low": "low", "edge_padding_high": "high", "interior_padding": "interior"}
    return {name: ints(getattr(p, part) for p in parts) for name, part in names.items()}


@writes("dynamic-slice", "dynamic-update-slice")
def _dynamic(block: Block, ins: Instruction) -> Value:
    first = 1 if ins.opcode == "dynamic-slice" else 2
    if any(o.shape.rank for o in ins.operands[first:]):
        raise UnimplementedError(f"{ins.opcode} with a vector of starts has no form in StableHLO", where=repr(ins))
    sizes = {"slice_sizes": ints(ins.attrs["dynamic_slice_sizes"])} if first == 1 else None
    return block.emit(f"stablehlo.{ins.opcode.replace('-', '_')}", ins, sizes)


def _fields(ins: Instruction, *names: str) -> dict[str, Any]:
    return {name: tuple(ins.attrs[name]) for name in names}


def _gather(ins: Instruction) -> Attributes:
    lists = _fields(ins, "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
                    "start_index_map")  # fmt: skip
    return {
        "dimension_numbers": record("gather", **lists, index_vector_dim=ins.attrs["index_vector_dim"]),
        "slice_sizes": ints(ins.attrs["slice_sizes"]), "indices_are_sorted": flag(ins.attrs["indices_are_sorted"]),
    }  # fmt: skip


def _dimension(ins: Instruction) -> Attributes:
    return {"dimension": number(ins.attrs["dimensions"][0])}


# Operations that apply a computation


@writes("scatter")
def _scatter(block: Block, ins: Instruction) -> Value:
    lists = _fields(ins, "update_window_dims", "inserted_window_dims", "input_batching_dims",
                    "scatter_indices_batching_dims", "scatter_dims_to_operand_dims")  # fmt: skip
    attributes = {
        "scatter_dimension_numbers": record("scatter", **lists, index_vector_dim=ins.attrs["index_vector_dim"]),
        "indices_are_sorted": flag(ins.attrs["indices_are_sorted"]),
        "unique_indices": flag(ins.attrs["unique_indices"]),
    }
    return block.emit("stablehlo.scatter", ins, attributes, [Region.of(ins.called[0])])


def _applying(name: str, attributes: Callable[[Instruction], Attributes]) -> Write:
    return lambda block, ins: block.emit(name, ins, attributes(ins), [Region.of(c) for c in ins.called])


def _window(ins: Instruction) -> Attributes:
    window: Window = ins.attrs["window"]
    names = {
        "window_dimensions": "size", "window_strides": "stride", "base_dilations": "base_dilation",
        "window_dilations": "window_dilation",
    }  # fmt: skip
    if ins.opcode == "select-and-scatter":
        names = {k: v for k, v in names.items() if "dilation" not in k}
    attributes = {name: ints(getattr(d, part) for d in window) for name, part in names.items()}
    return {**attributes, "padding": rows([(d.padding_low, d.padding_high) for d in window], 2)}


def _sort(ins: Instruction) -> Attributes:
    return {**_dimension(ins), "is_stable": flag(ins.attrs["is_stable"])}


def _groups(ins: Instruction) -> Attributes:
    groups: ReplicaGroups = ins.attrs["replica_groups"]
    if groups.iota is not None:
        tiles = groups.iota
        numbers = np.arange(int(np.prod(tiles.reshape))).reshape(tiles.reshape)
        table = numbers.transpose(tiles.transpose or None).reshape(tiles.dims).tolist()
    else:
        table = [list(group) for group in groups.groups]
    widest = max(map(len, table), default=0)
    filled = [[*row, *[-1] * (widest - len(row))] for row in table]
    return {"replica_groups": rows(filled, widest), **_channel(ins)}


def _channel(ins: Instruction) -> Attributes:
    channel = ins.attrs.get("channel_id")
    attributes = {} if channel is None else {"channel_handle": record("channel_handle", handle=channel, type=1)}
    return attributes | ({"use_global_device_ids": ""} if ins.attrs.get("use_global_device_ids") else {})


@writes("all-to-all")
def _all_to_all(block: Block, ins: Instruction) -> Value:
    if ins.attrs["dimensions"] is None:
        raise UnimplementedError("all-to-all of a tuple has no form in StableHLO", where=repr(ins))
    (split,) = ins.attrs["dimensions"]
    sizes = _groups(ins)["replica_groups"].rpartition("tensor<")[2].split("x")
    count = int(sizes[1]) if int(sizes[0]) else ins.operands[0].shape.dims[split]
    attributes = {"split_dimension": number(split), "concat_dimension": number(split), "split_count": number(count)}
    return block.emit("stablehlo.all_to_all", ins, attributes | _groups(ins))


def _permute(ins: Instruction) -> Attributes:
    return {"source_target_pairs": rows([list(p) for p in ins.attrs["source_target_pairs"]], 2), **_channel(ins)}


# Products and transforms


def _precision(ins: Instruction) -> Attributes:
    precisions = ins.attrs["operand_precision"]
    return {"precision_config": brackets(word("precision", p.upper()) for p in precisions)} if precisions else {}


def _dot(ins: Instruction) -> Attributes:
    dims = {f"{side}_{kind}": tuple(ins.attrs[f"{side}_{short}_dims"])
             for kind, short in (("batching_dimensions", "batch"), ("contracting_dimensions", "contracting"))
             for side in ("lhs", "rhs")}  # fmt: skip
    return {"dot_dimension_numbers": record("dot", **dims), **_precision(ins), **_algorithm(ins)}


def _algorithm(ins: Instruction) -> Attributes:
    """Return ``dot_bf16_bf16_f32_x3`` as a record."""
    name = ins.attrs["algorithm"]
    if name is None:
        return {}
    if "any_f8" in name:
        raise UnimplementedError(f"the algorithm {name} has no form in StableHLO", where=repr(ins))
    lhs, rhs, total, *times = name.removeprefix("dot_").split("_")
    return {"algorithm": record(
        "dot_algorithm", lhs_precision_type=lhs, rhs_precision_type=rhs, accumulation_type=total,
        lhs_component_count=1, rhs_component_count=1, num_primitive_operations=times[0][1:] if times else 1,
        allow_imprecise_accumulation="false",
    )}  # fmt: skip


def _convolution(ins: Instruction) -> Attributes:
    window: Window = ins.attrs["window"]
    return {
        "window_strides": ints(d.stride for d in window),
        "padding": rows([(d.padding_low, d.padding_high) for d in window], 2),
        "lhs_dilation": ints(d.base_dilation for d in window),
        "rhs_dilation": ints(d.window_dilation for d in window),
        "window_reversal": flags(d.window_reversal for d in window),
        "dimension_numbers": _conv_dims(ins.attrs["dim_labels"]),
        "feature_group_count": number(ins.attrs["feature_group_count"]),
        "batch_group_count": number(ins.attrs["batch_group_count"]),
        **_precision(ins),
    }


def _conv_dims(dims: ConvDims) -> str:
    def part(first: int, second: int, spatial: tuple[int, ...], names: str) -> str:
        label_of_dim = {first: names[0], second: names[1], **{d: str(k) for k, d in enumerate(spatial)}}
        return brackets(label_of_dim[d] for d in range(len(label_of_dim)))

    lhs = part(dims.input_batch, dims.input_feature, dims.input_spatial, "bf")
    rhs = part(dims.kernel_input_feature, dims.kernel_output_feature, dims.kernel_spatial, "io")
    out = part(dims.output_batch, dims.output_feature, dims.output_spatial, "bf")
    return f"#stablehlo.conv<{lhs}x{rhs}->{out}>"


def _fft(ins: Instruction) -> Attributes:
    return {"fft_type": word("fft_type", ins.attrs["fft_type"]), "fft_length": ints(ins.attrs["fft_length"])}


def _triangular(ins: Instruction) -> Attributes:
    flags = {k: flag(ins.attrs[k]) for k in ("left_side", "lower", "unit_diagonal")}
    return {**flags, "transpose_a": word("transpose", ins.attrs["transpose_a"])}


def _batch_norm(ins: Instruction) -> Attributes:
    epsilon = np.format_float_scientific(np.float32(ins.attrs["epsilon"]), unique=True, trim="0")
    return {"epsilon": f"{epsilon} : f32", "feature_index": number(ins.attrs["feature_index"])}


# Random numbers

_ALGORITHMS = {"rng_default": "DEFAULT", "rng_three_fry": "THREE_FRY", "rng_philox": "PHILOX"}


@writes("rng")
def _rng(block: Block, ins: Instruction) -> Value:
    sizes = Literal(np.array(ins.shape.dims, np.int64))
    name = leaves(_literal(block, sizes))[0]
    operands = [(n, o.shape) for n, o in zip(block.operands(ins), ins.operands, strict=True)]
    kind = ins.attrs["distribution"].removeprefix("rng_").upper()
    attributes = {"rng_distribution": word("rng_distribution", kind)}
    return block.emit("stablehlo.rng", ins, attributes, operands=[*operands, (name, sizes.shape)])


def _generator(ins: Instruction) -> Attributes:
    return {"rng_algorithm": word("rng_algorithm", _ALGORITHMS[ins.attrs["algorithm"]])}


# Tuples, calls, loops, branches


@writes("tuple")
def _tuple(block: Block, ins: Instruction) -> Value:
    return [block.values[o] for o in ins.operands]


@writes("get-tuple-element")
def _element(block: Block, ins: Instruction) -> Value:
    return block.values[ins.operands[0]][ins.attrs["index"]]


@writes("call", "fusion")
def _call(block: Block, ins: Instruction) -> Value:
    operand_types = ", ".join(type_of(s) for o in ins.operands for s in shapes_of(o.shape))
    types = result_types([type_of(s) for s in shapes_of(ins.shape)])
    name = block.writer.callee(ins.called[0])
    return block.assign(
        f"func.call @{name}({', '.join(block.operands(ins))}) : ({operand_types}) -> {types}", ins.shape
    )


@writes("while")
def _while(block: Block, ins: Instruction) -> Value:
    body, condition = ins.called
    return block.emit("stablehlo.while", ins, None, [Region.of(condition), Region.of(body)])


@writes("conditional")
def _conditional(block: Block, ins: Instruction) -> Value:
    """Write branches, whose regions have no arguments and use values of the outer block."""
    selector, *operands = ins.operands

    def branch(k: int) -> Region:
        operand = block.values[operands[k]]
        return Region(ins.called[k], (), lambda names: [operand])

    name = "stablehlo.if" if selector.shape.dtype is ElementType.PRED else "stablehlo.case"
    regions = [branch(k) for k in range(len(ins.called))]
    return block.emit(name, ins, None, regions, [(leaves(block.values[selector])[0], selector.shape)])


_VERSIONS = {
    "API_VERSION_UNSPECIFIED": 0, "API_VERSION_ORIGINAL": 1, "API_VERSION_STATUS_RETURNING": 2,
    "API_VERSION_STATUS_RETURNING_UNIFIED": 3, "API_VERSION_TYPED_FFI": 4,
}  # fmt: skip


@writes("custom-call")
def _custom_call(block: Block, ins: Instruction) -> Value:
    if ins.attrs["literal"] is not None or ins.attrs["window"] is not None or ins.attrs["dim_labels"] is not None:
        raise UnimplementedError("custom-call with a window or a literal has no form in StableHLO", where=repr(ins))
    version = _VERSIONS[ins.attrs["api_version"]]
    config = ins.extras.get("backend_config") or ""
    text = config.decode() if isinstance(config, bytes) else str(config)
    attributes = {
        "call_target_name": quoted(ins.attrs["custom_call_target"]), "api_version": number(version, 32),
        "has_side_effect": flag(ins.attrs["custom_call_has_side_effect"]),
        "backend_config": text if version == 4 and text.startswith("{") else quoted(text),
    }  # fmt: skip
    if ins.called:
        attributes["called_computations"] = brackets(f"@{block.writer.callee(c)}" for c in ins.called)
    if ins.attrs["output_to_operand_aliasing"]:
        attributes["output_operand_aliases"] = brackets(map(_alias, ins.attrs["output_to_operand_aliasing"]))
    if ins.attrs["operand_layout_constraints"] is not None:
        attributes["operand_layouts"] = _layouts(
            s for c in ins.attrs["operand_layout_constraints"] for s in shapes_of(c)
        )
        attributes["result_layouts"] = _layouts(shapes_of(ins.shape))
    return block.emit("stablehlo.custom_call", ins, attributes)


def _alias(alias: Any) -> str:
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {brackets(alias.output_index)}, "
        f"operand_index = {alias.operand}, operand_tuple_indices = {brackets(alias.operand_index)}>"
    )


def _layouts(shapes: Iterable[Shape]) -> str:
    """Return the text of layouts, minor dimension first."""
    orders = [s.layout.minor_to_major if s.layout is not None else tuple(reversed(range(s.rank))) for s in shapes]
    return brackets(f"dense<{brackets(o) if o else ''}> : tensor<{len(o)}xindex>" for o in orders)


@writes("opt-barrier")
def _barrier(block: Block, ins: Instruction) -> Value:
    return block.emit("stablehlo.optimization_barrier", ins)


@writes("infeed")
def _infeed(block: Block, ins: Instruction) -> Value:
    return block.emit("stablehlo.infeed", ins, {"infeed_config": quoted(ins.attrs["infeed_config"])})


@writes("outfeed")
def _outfeed(block: Block, ins: Instruction) -> Value:
    return block.emit("stablehlo.outfeed", ins, {"outfeed_config": quoted(ins.attrs["outfeed_config"])})


@writes("send", "recv")
def _transfer(block: Block, ins: Instruction) -> Value:
    """Return the operands: the operation is written for send-done and recv-done."""
    done = list(ins.users)
    if len(done) != 1 or done[0].opcode != f"{ins.opcode}-done" or ins.is_root:
        raise UnimplementedError(
            f"{ins.opcode} without its {ins.opcode}-done has no form in StableHLO", where=repr(ins)
        )
    values = [block.values[o] for o in ins.operands]
    return [*values[:-1], *[""] * (3 - len(values)), values[-1]]


@writes("send-done", "recv-done")
def _transfer_done(block: Block, ins: Instruction) -> Value:
    (start,), opcode = ins.operands, ins.opcode.removesuffix("-done")
    if start.opcode != opcode:
        raise UnimplementedError(f"{ins.opcode} of a {start.opcode} has no form in StableHLO", where=repr(ins))
    is_host, to_host, from_host, between = start.attrs["is_host_transfer"], 2, 3, 1
    kind = between if not is_host else to_host if opcode == "send" else from_host
    channel = record("channel_handle", handle=start.attrs["channel_id"] or 0, type=kind)
    attributes = {"channel_handle": channel, "is_host_transfer": flag(is_host)}
    return block.emit(f"stablehlo.{opcode}", start, attributes, result=ins.shape)


@writes("topk")
def _topk(block: Block, ins: Instruction) -> Value:
    if not ins.attrs["largest"]:
        return block.emit("mhlo.topk", ins, {"k": number(ins.attrs["k"]), "largest": "false"})
    (name,), types = block.operands(ins), [type_of(s) for s in shapes_of(ins.shape)]
    operand = type_of(ins.operands[0].shape)
    return block.assign(f"chlo.top_k({name}, k = {ins.attrs['k']}) : {operand} -> {result_types(types)}", ins.shape)


# fmt: off
WRITERS.update({
    "after-all":            _plain("stablehlo.after_all"),
    "all-gather":           _plain("stablehlo.all_gather", lambda i: {
                                "all_gather_dim": number(i.attrs["dimensions"][0]), **_groups(i)}),
    "all-reduce":           _applying("stablehlo.all_reduce", _groups),
    "batch-norm-grad":      _plain("stablehlo.batch_norm_grad", _batch_norm),
    "batch-norm-inference": _plain("stablehlo.batch_norm_inference", _batch_norm),
    "batch-norm-training":  _plain("stablehlo.batch_norm_training", _batch_norm),
    "broadcast":            _plain("stablehlo.broadcast_in_dim", lambda i: {
                                "broadcast_dimensions": ints(i.attrs["dimensions"])}),
    "cholesky":             _plain("stablehlo.cholesky", lambda i: {"lower": flag(i.attrs["lower"])}),
    "clamp":                _plain("stablehlo.clamp"),
    "collective-broadcast": _plain("stablehlo.collective_broadcast", _groups),
    "collective-permute":   _plain("stablehlo.collective_permute", _permute),
    "compare":              _plain("stablehlo.compare", _compare),
    "concatenate":          _plain("stablehlo.concatenate", _dimension),
    "convert":              _plain("stablehlo.convert"),
    "convolution":          _plain("stablehlo.convolution", _convolution),
    "dot":                  _plain("stablehlo.dot_general", _dot),
    "fft":                  _plain("stablehlo.fft", _fft),
    "gather":               _plain("stablehlo.gather", _gather),
    "get-dimension-size":   _plain("stablehlo.get_dimension_size", _dimension),
    "iota":                 _plain("stablehlo.iota", lambda i: {"iota_dimension": number(i.attrs["iota_dimension"])}),
    "map":                  _applying("stablehlo.map", lambda i: {"dimensions": ints(i.attrs["dimensions"])}),
    "pad":                  _plain("stablehlo.pad", _pad),
    "partition-id":         _plain("stablehlo.partition_id"),
    "reduce":               _applying("stablehlo.reduce", lambda i: {"dimensions": ints(i.attrs["dimensions"])}),
    "reduce-precision":     _plain("stablehlo.reduce_precision", _reduce_precision),
    "reduce-scatter":       _applying("stablehlo.reduce_scatter", lambda i: {
                                "scatter_dimension": number(i.attrs["dimensions"][0]), **_groups(i)}),
    "reduce-window":        _applying("stablehlo.reduce_window", _window),
    "replica-id":           _plain("stablehlo.replica_id"),
    "reshape":              _plain("stablehlo.reshape"),
    "reverse":              _plain("stablehlo.reverse", lambda i: {"dimensions": ints(i.attrs["dimensions"])}),
    "rng-bit-generator":    _plain("stablehlo.rng_bit_generator", _generator),
    "select":               _plain("stablehlo.select"),
    "select-and-scatter":   _applying("stablehlo.select_and_scatter", _window),
    "set-dimension-size":   _plain("stablehlo.set_dimension_size", _dimension),
    "slice":                _plain("stablehlo.slice", _slice),
    "sort":                 _applying("stablehlo.sort", _sort),
    "transpose":            _plain("stablehlo.transpose", lambda i: {"permutation": ints(i.attrs["dimensions"])}),
    "triangular-solve":     _plain("stablehlo.triangular_solve", _triangular),
})
# fmt: on
