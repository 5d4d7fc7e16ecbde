"""Updates of variables, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient(
    "Assign", "AssignAdd", "AssignSub", "DestroyTemporaryVariable", "IsVariableInitialized", "ResourceCountUpTo",
    "ResourceScatterAdd", "ResourceScatterDiv", "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul",
    "ResourceScatterNdAdd", "ResourceScatterNdSub", "ResourceScatterNdUpdate", "ResourceScatterSub",
    "ResourceScatterUpdate", "ScatterAdd", "ScatterNdUpdate", "ScatterSub", "ScatterUpdate", "StridedSliceAssign",
    "TemporaryVariable", "Variable", "VariableV2",
)  # fmt: skip
