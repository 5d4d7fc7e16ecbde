"""Every op with a kernel is differentiable, declared not to be, or named here with a reason."""

import pytest
from support.graphs.kernel_names import ops_with_kernels

from cyxla.core.framework.gradient import GradientRegistry

NOT_DIFFERENTIATED = {
    "a loop of version 1: refused by name, with a hint to write a functional loop": (
        "Enter", "Exit", "NextIteration", "RefEnter", "RefExit", "RefNextIteration",
    ),
    "a form of a functional op that gradients are taken of before it is made": (
        "For", "MapDefun", "RemoteCall", "_If", "_While",
    ),
    "it is a gradient itself": ("SymbolicGradient",),
    "it gives a reference to one of its inputs, which no gradient can be sent back to": ("RefSelect",),
    "it stands where a graph was cut for its devices, after gradients are taken": (
        "_HostRecv", "_HostSend", "_Recv", "_Send",
    ),
    "a whole cell in one op, without the op that would be its gradient": (
        "BlockLSTM", "BlockLSTMV2", "GRUBlockCell", "LSTMBlockCell",
    ),
    "fused from several ops after gradients are taken": (
        "FusedPadConv2D", "FusedResizeAndPadConv2D", "_FusedBatchNormEx", "_FusedConv2D", "_FusedDepthwiseConv2dNative",
        "_FusedMatMul",
    ),
    "a first gradient whose own slope has no closed form": ("IgammaGradA", "RandomGammaGrad"),
    "a first gradient of which no second one is defined": (
        "CholeskyGrad", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient", "LRNGrad",
    ),
    "an old form; the op that replaced it is differentiable": ("SelfAdjointEig",),
    "for preparing images, not for training through": (
        "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "HSVToRGB", "ResizeArea",
    ),
}  # fmt: skip


def test_every_op_with_a_kernel_is_spoken_of():
    named = [op for names in NOT_DIFFERENTIATED.values() for op in names]
    assert sorted(ops_with_kernels() - set(GradientRegistry.global_().ops())) == sorted(named)


@pytest.mark.parametrize("op", ["ArgMax", "RandomUniform", "BitwiseAnd", "ResourceApplyAdam", "NonMaxSuppressionV4"])
def test_nothing_flows_through(op):
    assert GradientRegistry.global_().look_up(op).fn is None
