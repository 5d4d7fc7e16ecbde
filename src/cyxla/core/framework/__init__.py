"""Framework of ops: declarations, attributes, shapes, kernels, and their registries.

The names that authors of ops, kernels and gradients need can be imported from here; each is loaded when first asked.
"""

from typing import Any

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.gradient import gradient  # eagerly: loaded later, the submodule would replace the function
from cyxla.lazy_attributes import lazy_attributes

__all__ = ["gradient", "op"]

_EXPORTS = {
    "apply": ("apply_op",),
    "attr_value": ("AttrValue", "NameAttrList", "TensorValue"),
    "declarations.op": ("OpListOpRegistry", "OpRegistry", "register_op"),
    "declarations.op_def": ("ArgDef", "AttrDef", "OpDef"),
    "declarations.op_def_builder": ("OpDefBuilder", "OpRegistrationData"),
    "device_base": ("DeviceBase", "DeviceName"),
    "environment.env": ("Env",),
    "function": ("FunctionDef", "FunctionLibraryDefinition"),
    "gradient": ("no_gradient",),
    "kernel_decorators": ("array_kernel", "kernel"),
    "kernel_def": ("KernelDef", "MemoryType", "Name"),
    "kernel_registry": ("KernelRegistry", "create_op_kernel", "register_kernel_builder"),
    "load_library": ("load_dynamic_kernels", "load_op_library"),
    "node_def": ("NodeDef",),
    "op_kernel": ("AsyncOpKernel", "OpKernel", "OpKernelConstruction", "op_requires", "op_requires_async",
                  "op_requires_ok", "op_requires_ok_async"),
    "memory.allocators": ("Allocator", "AllocatorAttributes", "AllocatorRegistry"),
    "op_kernel_context": ("OpKernelContext", "StepContext"),
    "resource_mgr": ("ResourceBase", "ResourceHandle", "ResourceMgr"),
    "shape_fns.common": ("scalar_shape", "unchanged_shape", "unknown_shape"),
    "shape_inference": ("InferenceContext",),
    "step.session_state": ("SessionMetadata",),
    "step.cancellation": ("CancellationManager",),
    "step.rendezvous": ("Rendezvous",),
    "tensor_shape": ("TensorShape",),
    "types": ("DataType", "as_data_type"),
    "variable": ("Ref", "Var"),
}  # fmt: skip
_MODULE_OF = {name: f".{home}" for home, names in _EXPORTS.items() for name in names}
_import_name = lazy_attributes(__name__, _MODULE_OF)


def __getattr__(name: str) -> Any:
    return _import_name(name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_MODULE_OF))
