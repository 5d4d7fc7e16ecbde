"""Shapes of outputs, as far as they are known before ops run.

A row is: op, shapes of the inputs, known values of inputs, attributes, shapes of the outputs. In a shape ``?`` is an
unknown size; ``*`` is a shape of unknown rank; ``()`` is a scalar. A row with a message instead of outputs is an error.
"""

import re
from contextlib import suppress

import numpy as np
import pytest

from cyxla.core.framework.apply import to_attr_value
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError


def shapes(text):
    return [shape(word) for word in text.split()]


def shape(word):
    if word == "*":
        return TensorShape()
    return TensorShape(None if d == "?" else int(d) for d in word.strip("()").split(",") if d)


def infer(op, inputs, values=None, handles=None, **attrs):
    """The shapes of the outputs of an op."""
    data = OpRegistry.global_().look_up(op)
    given = {a.name: to_attr_value(a.type, attrs[a.name], a.name) for a in data.op_def.attr if a.name in attrs}
    for attr in data.op_def.attr:
        if attr.name not in given:
            given[attr.name] = attr.default or to_attr_value(attr.type, _some(attr, len(inputs)), attr.name)
    tensors = [None if v is None else np.asarray(v) for v in (_at(values, i) for i in range(len(inputs)))]
    as_shapes = [None] * len(inputs)
    held = [_at(handles, i) for i in range(len(inputs))]
    context = InferenceContext(data.op_def, given, inputs, tensors, as_shapes, held)
    data.shape_inference_fn(context)
    return [context.output(i) for i in range(context.num_outputs)], context.output_handles


def _at(values, i):
    return (values or {}).get(i)


def _some(attr, count):
    """A value for an attribute that a row does not care about."""
    if attr.type == "type":
        return (attr.allowed or (DataType.DT_FLOAT,))[0]
    some = {"int": count, "list(type)": ["float"] * count, "func": "f", "string": "x", "bool": False, "float": 1.0}
    return some[attr.type]


CUBE = [1, 2, 2, 2, 1]
ROWS = [
    # element-wise
    ("Neg", "2,?", {}, {}, "2,?"),
    ("AddV2", "2,1 3", {}, {}, "2,3"),
    ("AddV2", "2 3", {}, {}, "broadcast"),
    ("Equal", "2 3", {}, {"incompatible_shape_error": False}, "*"),
    ("Equal", "2 3", {}, {"incompatible_shape_error": True}, "broadcast"),
    ("TanhGrad", "2,3 2,3", {}, {}, "2,3"),
    ("ApproximateEqual", "2,? ?,3", {}, {}, "2,3"),
    ("Select", "() 2,3 2,3", {}, {}, "2,3"),
    ("Select", "2 2,3 ?,3", {}, {}, "2,3"),
    ("Select", "3 2,3 2,3", {}, {}, "must be equal"),
    ("SelectV2", "3 2,1 ()", {}, {}, "2,3"),
    ("AddN", "2,? ?,3 *", {}, {}, "2,3"),
    ("Betainc", "() 2,3 ()", {}, {}, "2,3"),
    ("Betainc", "() () ()", {}, {}, "()"),
    ("Cast", "*", {}, {}, "*"),
    # reductions and scans
    ("Sum", "2,3,4 1", {1: [1]}, {}, "2,4"),
    ("Sum", "2,3,4 ()", {1: -1}, {"keep_dims": True}, "2,3,1"),
    ("Sum", "2,3,4 2", {1: [0, 0]}, {}, "3,4"),
    ("Sum", "2,3,4 ?", {}, {}, "*"),
    ("Sum", "2,3,4 ?", {}, {"keep_dims": True}, "?,?,?"),
    ("Sum", "2,3,4 0", {1: np.zeros(0, int)}, {}, "2,3,4"),
    ("Sum", "2 1", {1: [1]}, {}, "dimension 1"),
    ("ArgMax", "2,3,4 ()", {1: 1}, {}, "2,4"),
    ("ArgMax", "2,3,4 ()", {}, {}, "?,?"),
    ("ArgMax", "2 ()", {1: 0}, {}, "()"),
    ("ArgMax", "2,3 ()", {1: 2}, {}, "dimension 2"),
    ("Cumsum", "2,? ()", {1: 1}, {}, "2,?"),
    # products
    ("MatMul", "2,3 3,5", {}, {}, "2,5"),
    ("MatMul", "3,2 5,3", {}, {"transpose_a": True, "transpose_b": True}, "2,5"),
    ("MatMul", "* *", {}, {}, "?,?"),
    ("MatMul", "2,3 4,5", {}, {}, "3 and 4"),
    ("MatMul", "2 2,3", {}, {}, "rank 2"),
    ("BatchMatMul", "7,2,3 7,3,5", {}, {}, "7,2,5"),
    ("BatchMatMulV2", "7,1,2,3 4,5,3", {}, {"adj_y": True}, "7,4,2,5"),
    ("Einsum", "2,3 3,4", {}, {"equation": "ij,jk->ik"}, "2,4"),
    ("Einsum", "7,2,3 3,4", {}, {"equation": "...ij,jk->...ik"}, "7,2,4"),
    ("Einsum", "2,3 4,5", {}, {"equation": "ij,jk->ik"}, "3 and 4"),
    ("Cross", "2,3 2,?", {}, {}, "2,3"),
    # ranges and counts
    ("Range", "() () ()", {0: 1, 1: 10, 2: 4}, {}, "3"),
    ("Range", "() () ()", {0: 10, 1: 1, 2: -4}, {}, "3"),
    ("Range", "() () ()", {0: 0.0, 1: 1.0, 2: 0.3}, {}, "4"),
    ("Range", "() () ()", {0: 1, 1: 10}, {}, "?"),
    ("Range", "() () ()", {0: 1, 1: 10, 2: 0}, {}, "delta"),
    ("Range", "() () ()", {0: 1, 1: 10, 2: -1}, {}, "cannot be reached"),
    ("LinSpace", "() () ()", {2: 5}, {}, "5"),
    ("Bincount", "* () *", {1: 7}, {}, "7"),
    ("DenseBincount", "3,4 () 0", {1: 7}, {}, "3,7"),
    # shapes of shapes
    ("Shape", "2,?,4", {}, {}, "3"),
    ("Shape", "*", {}, {}, "?"),
    ("ShapeN", "2 * ()", {}, {}, "1 ? 0"),
    ("Rank", "*", {}, {}, "()"),
    ("Reshape", "2,3 2", {1: [3, -1]}, {}, "3,2"),
    ("Reshape", "?,3 1", {1: [-1]}, {}, "?"),
    ("Reshape", "2,3 ?", {}, {}, "*"),
    ("Reshape", "2,3 2", {}, {}, "?,?"),
    ("Reshape", "0,3 2", {1: [0, -1]}, {}, "0,?"),
    ("Reshape", "2,3 2", {1: [4, 2]}, {}, "6 elements"),
    ("Reshape", "2,3 2", {1: [4, -1]}, {}, "not a multiple"),
    ("ExpandDims", "2,3 ()", {1: -1}, {}, "2,3,1"),
    ("ExpandDims", "2,3 ()", {}, {}, "?,?,?"),
    ("ExpandDims", "2,3 ()", {1: 3}, {}, "out of range"),
    ("Squeeze", "1,2,1", {}, {}, "2"),
    ("Squeeze", "1,2,1", {}, {"squeeze_dims": [-1]}, "1,2"),
    ("Squeeze", "1,?,1", {}, {}, "*"),
    ("Squeeze", "1,?,1", {}, {"squeeze_dims": [1]}, "1,1"),
    ("Squeeze", "1,2,1", {}, {"squeeze_dims": [1]}, "must be 1"),
    ("Fill", "2 ()", {0: [2, 3]}, {}, "2,3"),
    ("Fill", "2 ()", {}, {}, "?,?"),
    ("Fill", "2 ()", {0: [2, -3]}, {}, "below -1"),
    ("BroadcastTo", "3 2", {1: [2, 3]}, {}, "2,3"),
    ("BroadcastTo", "4 2", {1: [2, 3]}, {}, "does not broadcast"),
    ("OneHot", "2,3 () () ()", {1: 5}, {"axis": 1}, "2,5,3"),
    ("OneHot", "2,3 () () ()", {}, {}, "2,3,?"),
    ("Where", "2,3", {}, {}, "?,2"),
    ("Unique", "5", {}, {}, "? 5"),
    ("Bitcast", "2,3", {}, {"T": "float", "type": "uint8"}, "2,3,4"),
    ("Bitcast", "2,4", {}, {"T": "uint8", "type": "float"}, "2"),
    ("Bitcast", "2,3", {}, {"T": "uint8", "type": "float"}, "must be 4"),
    # slices and joins
    ("Slice", "5,6 2 2", {1: [1, 2], 2: [2, -1]}, {}, "2,4"),
    ("Slice", "5,6 2 2", {2: [2, 3]}, {}, "2,3"),
    ("Slice", "5,6 2 2", {1: [4, 0], 2: [2, 3]}, {}, "out of range"),
    ("StridedSlice", "5,6 2 2 2", {1: [1, 0], 2: [4, 6], 3: [2, -1]}, {}, "2,0"),
    ("StridedSlice", "5,6 1 1 1", {1: [1], 2: [2], 3: [1]}, {"shrink_axis_mask": 1}, "6"),
    ("StridedSlice", "5,6 2 2 2", {1: [0, 0], 2: [0, 3], 3: [1, 1]}, {"ellipsis_mask": 1}, "5,3"),
    ("StridedSlice", "5,6 2 2 2", {1: [0, 1], 2: [0, 3], 3: [1, 1]}, {"new_axis_mask": 1}, "1,2,6"),
    ("StridedSlice", "5,6 1 1 1", {1: [0], 2: [0], 3: [-1]}, {"begin_mask": 1, "end_mask": 1}, "5,6"),
    ("StridedSlice", "5,? 1 1 1", {1: [2], 3: [1]}, {"shrink_axis_mask": 1}, "?"),
    ("StridedSlice", "5 1 1 1", {1: [5], 2: [6], 3: [1]}, {"shrink_axis_mask": 1}, "out of range"),
    ("StridedSlice", "5 1 1 1", {1: [0], 2: [3], 3: [0]}, {}, "stride is 0"),
    ("ConcatV2", "2,3 2,? ()", {2: 1}, {"N": 2}, "2,?"),
    ("ConcatV2", "2,3 4,3 ()", {2: -2}, {"N": 2}, "6,3"),
    ("ConcatV2", "2,3 4,3 ()", {2: 1}, {"N": 2}, "must be equal"),
    ("ConcatV2", "2,3 2,3 ()", {}, {"N": 2}, "?,?"),
    ("Concat", "() 2,3 4,3", {0: 0}, {"N": 2}, "6,3"),
    ("Pack", "2,3 2,3", {}, {"axis": -1}, "2,3,2"),
    ("Unpack", "2,3", {}, {"num": 3, "axis": 1}, "2 2 2"),
    ("Unpack", "2,3", {}, {"num": 2, "axis": 1}, "must be 2"),
    ("Split", "() 6,3", {0: 0}, {"num_split": 3}, "2,3 2,3 2,3"),
    ("Split", "() 5,3", {0: 0}, {"num_split": 3}, "multiple of 3"),
    ("SplitV", "6,3 2 ()", {1: [-1, 4], 2: 0}, {"num_split": 2}, "2,3 4,3"),
    ("SplitV", "6,3 2 ()", {1: [3, 4], 2: 0}, {"num_split": 2}, "add up"),
    ("Pad", "2,3 2,2", {1: [[1, 1], [0, 2]]}, {}, "4,5"),
    ("Pad", "* 2,2", {}, {}, "?,?"),
    ("MirrorPadGrad", "4,5 2,2", {1: [[1, 1], [0, 2]]}, {"mode": "REFLECT"}, "2,3"),
    ("Tile", "2,3 2", {1: [2, 1]}, {}, "4,3"),
    ("Transpose", "2,3,4 3", {1: [2, 0, 1]}, {}, "4,2,3"),
    ("Transpose", "2,3,4 3", {}, {}, "?,?,?"),
    ("Transpose", "2,3 2", {1: [0, 0]}, {}, "not a permutation"),
    ("ReverseSequence", "2,3 ?", {}, {"seq_dim": 1}, "2,3"),
    ("SpaceToBatchND", "1,4,4,3 2 2,2", {1: [2, 2], 2: [[0, 0], [0, 0]]}, {}, "4,2,2,3"),
    ("BatchToSpace", "4,2,2,3 2,2", {1: [[0, 0], [0, 1]]}, {"block_size": 2}, "1,4,3,3"),
    ("SpaceToDepth", "1,4,6,3", {}, {"block_size": 2}, "1,2,3,12"),
    ("DepthToSpace", "1,12,2,3", {}, {"block_size": 2, "data_format": "NCHW"}, "1,3,4,6"),
    ("ExtractImagePatches", "1,5,5,3", {}, {"ksizes": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1],
                                            "padding": "VALID"}, "1,3,3,27"),
    # gathering and scattering
    ("Gather", "5,3 2,4", {}, {}, "2,4,3"),
    ("GatherV2", "5,3,7 2 ()", {2: 1}, {}, "5,2,7"),
    ("GatherV2", "5,3,7 5,4 ()", {2: 1}, {"batch_dims": 1}, "5,4,7"),
    ("GatherV2", "5,3 2 ()", {}, {}, "?,?"),
    ("GatherNd", "5,3,7 2,4,2", {}, {}, "2,4,7"),
    ("GatherNd", "5,3 2,3", {}, {}, "3 coordinates"),
    ("ScatterNd", "4,1 4,3 2", {2: [8, 3]}, {}, "8,3"),
    ("ScatterNd", "4,1 5,3 2", {2: [8, 3]}, {}, "must be equal"),
    ("TensorScatterAdd", "8,3 4,1 4,3", {}, {}, "8,3"),
    ("UnsortedSegmentSum", "4,3,2 4,3 ()", {2: 5}, {}, "5,2"),
    ("SegmentSum", "4,3 4", {}, {}, "?,3"),
    ("DynamicPartition", "4,3 4", {}, {"num_partitions": 2}, "?,3 ?,3"),
    ("DynamicStitch", "2 1 2,3 1,3", {0: [0, 4], 1: [2]}, {"N": 2}, "5,3"),
    # diagonals
    ("Diag", "2,3", {}, {}, "2,3,2,3"),
    ("DiagPart", "2,3,2,?", {}, {}, "2,3"),
    ("MatrixDiag", "2,3", {}, {}, "2,3,3"),
    ("MatrixDiagPart", "2,3,4", {}, {}, "2,3"),
    ("MatrixDiagPartV3", "2,3,4 2 ()", {1: [-1, 1]}, {}, "2,3,3"),
    ("MatrixDiagPartV2", "2,3,4 () ()", {1: 2}, {}, "2,2"),
    ("MatrixDiagPartV2", "2,3,4 () ()", {1: 4}, {}, "out of range"),
    ("MatrixDiagV3", "2,3 () () () ()", {1: 1, 2: -1, 3: -1}, {}, "2,4,4"),
    ("MatrixSetDiag", "2,3,4 2,3", {}, {}, "2,3,4"),
    # nets
    ("Conv2D", "2,8,8,3 3,3,3,5", {}, {"strides": [1, 2, 2, 1], "padding": "SAME"}, "2,4,4,5"),
    ("Conv2D", "2,8,8,3 3,3,3,5", {}, {"strides": [1, 1, 1, 1], "padding": "VALID"}, "2,6,6,5"),
    ("Conv2D", "2,7,9,3 3,3,3,5", {}, {"strides": [1, 2, 2, 1], "padding": "SAME"}, "2,4,5,5"),
    ("Conv2D", "2,8,8,3 3,3,3,5", {}, {"strides": [1, 1, 1, 1], "padding": "EXPLICIT",
                                       "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]}, "2,9,7,5"),
    ("Conv2D", "2,8,8,3 3,3,3,5", {}, {"strides": [1] * 4, "padding": "VALID", "dilations": [1, 2, 2, 1]}, "2,4,4,5"),
    ("Conv2D", "2,3,8,8 3,3,3,5", {}, {"strides": [1] * 4, "padding": "VALID", "data_format": "NCHW"}, "2,5,6,6"),
    ("Conv2D", "2,2,2,3 3,3,3,5", {}, {"strides": [1] * 4, "padding": "VALID"}, "does not fit"),
    ("Conv2D", "2,8,8,4 3,3,3,5", {}, {"strides": [1] * 4, "padding": "SAME"}, "not a multiple"),
    ("Conv2D", "2,8,8,4 3,3,2,6", {}, {"strides": [1] * 4, "padding": "SAME"}, "2,8,8,6"),
    ("Conv2D", "2,?,8,3 3,3,3,5", {}, {"strides": [1] * 4, "padding": "VALID"}, "2,?,6,5"),
    ("Conv2DBackpropInput", "4 3,3,3,5 2,8,8,5", {0: [2, 8, 8, 3]}, {"strides": [1] * 4, "padding": "SAME"}, "2,8,8,3"),
    ("Conv2DBackpropFilter", "2,8,8,3 4 *", {1: [3, 3, 3, 5]}, {"strides": [1] * 4, "padding": "SAME"}, "3,3,3,5"),
    ("Conv3D", "2,8,8,8,3 3,3,3,3,5", {}, {"strides": [1] * 5, "padding": "VALID"}, "2,6,6,6,5"),
    ("DepthwiseConv2dNative", "2,8,8,3 3,3,3,2", {}, {"strides": [1] * 4, "padding": "VALID"}, "2,6,6,6"),
    ("MaxPool", "2,8,8,3", {}, {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}, "2,4,4,3"),
    ("MaxPoolV2", "2,8,8,3 4 4", {1: [1, 3, 3, 1], 2: [1, 2, 2, 1]}, {"padding": "SAME"}, "2,4,4,3"),
    ("MaxPoolV2", "2,8,8,3 4 4", {}, {"padding": "SAME"}, "?,?,?,?"),
    ("AvgPool3D", "2,8,8,8,3", {}, {"ksize": CUBE, "strides": CUBE, "padding": "VALID"}, "2,4,4,4,3"),
    ("AvgPoolGrad", "4 2,4,4,3", {0: [2, 8, 8, 3]}, {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1],
                                                     "padding": "VALID"}, "2,8,8,3"),
    ("BiasAdd", "2,3,4 ?", {}, {}, "2,3,4"),
    ("BiasAdd", "2,3,4 5", {}, {}, "4 and 5"),
    ("BiasAddGrad", "2,5,4,4", {}, {"data_format": "NCHW"}, "5"),
    ("FusedBatchNormV3", "2,8,8,3 ? ? 0 0", {}, {"is_training": True}, "2,8,8,3 3 3 3 3 *"),
    ("SoftmaxCrossEntropyWithLogits", "2,3 1,3", {}, {}, "2 2,3"),
    ("SparseSoftmaxCrossEntropyWithLogits", "?,3 2", {}, {}, "2 2,3"),
    ("TopKV2", "2,7 ()", {1: 3}, {}, "2,3 2,3"),
    ("TopKV2", "2,7 ()", {1: 8}, {}, "fewer"),
    # linear algebra and transforms
    ("Cholesky", "2,3,?", {}, {}, "2,3,3"),
    ("Cholesky", "2,3,4", {}, {}, "must be equal"),
    ("Qr", "5,3", {}, {}, "5,3 3,3"),
    ("Qr", "5,3", {}, {"full_matrices": True}, "5,5 5,3"),
    ("Svd", "5,3", {}, {}, "3 5,3 3,3"),
    ("SelfAdjointEigV2", "2,3,3", {}, {"compute_v": False}, "2,3 0"),
    ("MatrixTriangularSolve", "7,3,3 3,2", {}, {}, "7,3,2"),
    ("RFFT", "2,8 1", {1: [6]}, {}, "2,4"),
    ("IRFFT", "2,4 1", {1: [6]}, {}, "2,6"),
    ("RFFT2D", "2,8,8 2", {}, {}, "2,?,?"),
    # images
    ("ResizeBilinear", "2,8,8,3 2", {1: [4, 5]}, {}, "2,4,5,3"),
    ("CropAndResize", "2,8,8,3 5,4 5 2", {3: [4, 4]}, {}, "5,4,4,3"),
    ("NonMaxSuppressionV4", "9,4 9 () () ()", {2: 3}, {"pad_to_max_output_size": True}, "3 ()"),
    # random numbers
    ("RandomUniform", "2", {0: [2, 3]}, {}, "2,3"),
    ("StatelessRandomNormal", "2 2", {0: [2, 3]}, {}, "2,3"),
    ("StatelessRandomNormal", "2 3", {0: [2, 3]}, {}, "3 and 2"),
    ("Multinomial", "4,9 ()", {1: 7}, {}, "4,7"),
    # control flow and functions
    ("Switch", "2,3 ()", {}, {}, "2,3 2,3"),
    ("Merge", "2,3 4,3", {}, {}, "?,3 ()"),
    ("Merge", "2,3 4", {}, {}, "* ()"),
    ("Enter", "2", {}, {"frame_name": "f"}, "*"),
    ("Enter", "2", {}, {"frame_name": "f", "is_constant": True}, "2"),
    ("If", "() 2", {}, {"Tin": ["float"], "Tout": ["float"] * 2, "output_shapes": [[2], [None, 3]]}, "2 ?,3"),
    ("While", "2 3", {}, {"T": ["float"] * 2}, "2 3"),
    ("Placeholder", "", {}, {"shape": [2, None]}, "2,?"),
    ("EnsureShape", "2,?", {}, {"shape": [None, 3]}, "2,3"),
    # stacks, tensor arrays, lists
    ("StackPushV2", "() 2,3", {}, {}, "2,3"),
    # queues, barriers, session handles, maps
    ("FIFOQueue", "", {}, {"shapes": []}, "2"),
    ("FIFOQueueV2", "", {}, {"shapes": []}, "()"),
    ("FakeQueue", "()", {}, {}, "2"),
    ("QueueSize", "2", {}, {}, "()"),
    ("QueueSize", "3", {}, {}, "a size must be 2"),
    ("QueueSize", "()", {}, {}, "must be of rank 1"),
    ("QueueIsClosedV2", "()", {}, {}, "()"),
    ("QueueDequeueV2", "()", {}, {"component_types": ["float"]}, "*"),
    ("QueueDequeueManyV2", "() ()", {1: 3}, {"component_types": ["float"]}, "*"),
    ("QueueDequeueManyV2", "() ()", {1: -3}, {"component_types": ["float"]}, "Input 'n' must be >= 0, but is -3"),
    ("BarrierReadySize", "2", {}, {}, "()"),
    ("BarrierReadySize", "1", {}, {}, "a size must be 2"),
    ("BarrierInsertMany", "2 3 3,4", {}, {"component_index": 0}, ""),
    ("BarrierInsertMany", "2 3 4", {}, {"component_index": 0}, "must be equal"),
    ("GetSessionHandle", "2,3", {}, {}, "()"),
    ("GetSessionTensor", "()", {}, {}, "*"),
    ("GetSessionTensor", "2", {}, {}, "must be of rank 0"),
    ("TensorMapSize", "()", {}, {}, "()"),
    ("TensorMapLookup", "() 3", {}, {}, "*"),
    ("TensorArraySizeV2", "2 ()", {}, {}, "()"),
    ("TensorArraySizeV2", "() ()", {}, {}, "must be of rank 1"),
    ("TensorArrayGatherV2", "2 4 ()", {}, {"element_shape": [None, 3]}, "*"),
    ("TensorArrayGradV2", "2 ()", {}, {"source": "s"}, "2"),
    ("TensorArrayGatherV3", "() 4 ()", {}, {"element_shape": [None, 3]}, "4,?,3"),
    ("TensorListStack", "() 1", {1: [3]}, {"num_elements": 4}, "4,3"),
    ("TensorListGetItem", "() () 1", {2: [-1]}, {}, "?"),
    # strings and files
    ("StringJoin", "() 2 ()", {}, {}, "2"),
    ("StringFormat", "2 3", {}, {"template": "%s and %s"}, "()"),
    ("StringFormat", "2 3", {}, {"template": "%s"}, "1 placeholders for 2"),
    ("ReduceJoin", "2,3 1", {1: [0]}, {}, "3"),
    ("SaveV2", "() 2 2 4 5", {}, {"dtypes": ["float"] * 2}, ""),
    ("SaveV2", "() 3 3 4 5", {}, {"dtypes": ["float"] * 2}, "3 and 2"),
    # HLO
    ("XlaPad", "2,3 () 2 2 2", {2: [1, 0], 3: [0, 0], 4: [1, 0]}, {}, "4,3"),
    ("XlaReduce", "2,3,4 ()", {}, {"dimensions_to_reduce": [0, 2]}, "3"),
    ("XlaEinsum", "2,3 3,4", {}, {"equation": "ab,bc->ca"}, "4,2"),
    ("XlaSplitND", "4,6", {}, {"N": 4, "num_splits": [2, 2]}, "2,3 2,3 2,3 2,3"),
    ("XlaConcatND", "2,3 2,3", {}, {"num_concats": [2, 1]}, "4,3"),
    ("XlaDynamicSlice", "8,8 2 2", {2: [2, 3]}, {}, "2,3"),
    ("XlaBroadcastHelper", "2,3 3 1", {2: [1]}, {}, "2,3 1,3"),
]  # fmt: skip


@pytest.mark.parametrize("op, inputs, values, attrs, want", ROWS, ids=[f"{r[0]}-{i}" for i, r in enumerate(ROWS)])
def test_shapes(op, inputs, values, attrs, want):
    if re.search("[a-z]", want) or "and" in want:
        with pytest.raises(InvalidArgumentError, match=want):
            infer(op, shapes(inputs), values, **attrs)
    else:
        assert infer(op, shapes(inputs), values, **attrs)[0] == shapes(want)


HELD = {0: ((TensorShape([5, 3]), DataType.DT_FLOAT),)}
VARIABLES = [
    ("ReadVariableOp", "()", {"dtype": "float"}, "5,3"),
    ("ReadVariableOp", "()", {"dtype": "int32"}, "of type float"),
    ("VariableShape", "()", {}, "2"),
    ("ResourceGather", "() 4", {"dtype": "float"}, "4,3"),
    ("AssignVariableOp", "() 5,?", {"dtype": "float"}, ""),
    ("AssignVariableOp", "() 4,3", {"dtype": "float"}, "must be equal"),
    ("ResourceScatterAdd", "() 2 2,3", {"dtype": "float"}, ""),
    ("ResourceScatterAdd", "() 2 ()", {"dtype": "float"}, ""),
    ("ResourceScatterAdd", "() 2 2,4", {"dtype": "float"}, "must be equal"),
    ("ResourceApplyGradientDescent", "() () 5,3", {}, ""),
    ("ResourceApplyGradientDescent", "() 1 5,3", {}, "rank 0"),
    ("ResourceApplyGradientDescent", "() () 5,4", {}, "must be equal"),
    ("ResourceSparseApplyMomentum", "() () () 2,3 2 ()", {}, ""),
    ("ResourceSparseApplyMomentum", "() () () 2,4 2 ()", {}, "must be equal"),
    ("QueueDequeueV2", "()", {"component_types": ["float"]}, "5,3"),
    ("QueueDequeueV2", "()", {"component_types": ["float", "float"]}, "* *"),
    ("QueueDequeueManyV2", "() ()", {"component_types": ["float"]}, "?,5,3"),
    ("QueueDequeueUpToV2", "() ()", {"component_types": ["float"]}, "?,5,3"),
]


@pytest.mark.parametrize("op, inputs, attrs, want", VARIABLES)
def test_shapes_behind_handles(op, inputs, attrs, want):
    """Shapes of variables."""
    if re.search("[a-z]", want):
        with pytest.raises(InvalidArgumentError, match=want):
            infer(op, shapes(inputs), None, HELD, **attrs)
    else:
        assert infer(op, shapes(inputs), None, HELD, **attrs)[0] == shapes(want)


def test_handles_have_shapes_and_types():
    made, handles = infer("VarHandleOp", [], dtype="float", shape=[5, 3])
    assert (made, handles) == ([TensorShape([])], [HELD[0]])
    assert infer("Identity", [TensorShape([])], None, HELD, T="resource")[1] == [HELD[0]]
    _, handles = infer("EmptyTensorList", shapes("1 ()"), {0: [3]}, element_dtype="float")
    assert handles == [((TensorShape([3]), DataType.DT_FLOAT),)]


def ours(data):
    """Whether an op is one of the catalogue."""
    return getattr(data.shape_inference_fn, "__module__", "").startswith("cyxla.core.")


@pytest.mark.parametrize("name", [d.op_def.name for d in OpRegistry.global_().get_op_registration_data() if ours(d)])
def test_nothing_known_is_never_a_crash(name):
    """Any op with inputs of unknown shapes: an answer, or a clean error about attributes."""
    op_def = OpRegistry.global_().look_up_op_def(name)
    attrs = {a.name: LITTLE[a.type](a) for a in op_def.attr if a.default is None and a.type in LITTLE}
    count = sum(2 if arg.is_list else 1 for arg in op_def.input_arg)
    with suppress(InvalidArgumentError):
        infer(name, [TensorShape()] * count, **attrs)


LITTLE = {
    "int": lambda a: 2,
    "list(type)": lambda a: ["float"] * 2,
    "list(int)": lambda a: [1] * max(a.minimum or 0, 4),
    "list(func)": lambda a: [],
    "list(shape)": lambda a: [[2], [3]],
    "list(string)": lambda a: ["x", "y"],
    "list(float)": lambda a: [1.0],
    "shape": lambda a: [2],
    "string": lambda a: a.allowed[0] if a.allowed else "x",
    "tensor": lambda a: np.zeros(3),
}
