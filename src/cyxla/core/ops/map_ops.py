"""Maps of tensors."""

from cyxla.core.framework.common_shape_fns import scalar_shape
from cyxla.core.framework.op import op

op("EmptyTensorMap", "-> handle: variant", shape=scalar_shape, doc="A map without entries.")
