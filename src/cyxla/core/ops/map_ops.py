"""Maps of tensors."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import scalar_shape

op("EmptyTensorMap", "-> handle: variant", shape=scalar_shape, doc="Make an empty map.")
