"""Tensors sent between devices."""

from cyxla.core.framework.common_shape_fns import no_outputs, unknown_shape
from cyxla.core.framework.op import op

op("_HostRecv", "-> tensor: tensor_type", "tensor_type: type", "tensor_name: string", "send_device: string",
    "send_device_incarnation: int", "recv_device: string", "client_terminated: bool = false", stateful=True,
    system=True, shape=unknown_shape,
)  # fmt: skip
op("_HostSend", "tensor: T ->", "T: type", "tensor_name: string", "send_device: string", "send_device_incarnation: int",
    "recv_device: string", "client_terminated: bool = false", stateful=True, system=True, shape=no_outputs,
)  # fmt: skip
op("_Recv", "-> tensor: tensor_type", "tensor_type: type", "tensor_name: string", "send_device: string",
    "send_device_incarnation: int", "recv_device: string", "client_terminated: bool = false", stateful=True,
    system=True, shape=unknown_shape,
)  # fmt: skip
op("_Send", "tensor: T ->", "T: type", "tensor_name: string", "send_device: string", "send_device_incarnation: int",
    "recv_device: string", "client_terminated: bool = false", stateful=True, system=True, shape=no_outputs,
)  # fmt: skip
