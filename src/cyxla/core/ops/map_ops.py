"""Maps of tensors."""

from cyxla.core.framework.op import op

op("EmptyTensorMap", "-> handle: variant", shape=None)
