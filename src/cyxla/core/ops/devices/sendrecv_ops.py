"""Transfers of tensors between devices."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, unknown_shape

op("_HostRecv", "-> tensor: tensor_type", "tensor_type: type", "tensor_name: string", "send_device: string",
    "send_device_incarnation: int", "recv_device: string", "client_terminated: bool = false", stateful=True,
    system=True, shape=unknown_shape, doc="Receive a tensor in host memory.",
)  # fmt: skip
op("_HostSend", "tensor: T ->", "T: type", "tensor_name: string", "send_device: string", "send_device_incarnation: int",
    "recv_device: string", "client_terminated: bool = false", stateful=True, system=True, shape=no_outputs,
    doc="Send a tensor from host memory.",
)  # fmt: skip
op("_Recv", "-> tensor: tensor_type", "tensor_type: type", "tensor_name: string", "send_device: string",
    "send_device_incarnation: int", "recv_device: string", "client_terminated: bool = false", stateful=True,
    system=True, shape=unknown_shape, doc="Receive a tensor from another device.",
)  # fmt: skip
op("_Send", "tensor: T ->", "T: type", "tensor_name: string", "send_device: string", "send_device_incarnation: int",
    "recv_device: string", "client_terminated: bool = false", stateful=True, system=True, shape=no_outputs,
    doc="Send a tensor to another device.",
)  # fmt: skip
