"""A sample backend of a few dozen opcodes for an imaginary processor."""


def register() -> None:
    """Make the processor known: once, when cyxla looks for backends."""
    from cyxla.autojit.runtime.xla_device import XlaDeviceFactory
    from cyxla.core.runtime.device_factory import register_device
    from cyxla.tf2xla.xla_op_registry import register_xla_backend
    from cyxla.xla.service import register_compiler
    from cyxla_toy import kernels
    from cyxla_toy.compiler import ToyCompiler

    register_compiler("toy", ToyCompiler)
    register_xla_backend("XLA_TOY_JIT", kernels.TYPES, kernels.op_filter)
    kernels.register()
    register_device("XLA_TOY", XlaDeviceFactory("XLA_TOY_JIT", "toy"), priority=500)
