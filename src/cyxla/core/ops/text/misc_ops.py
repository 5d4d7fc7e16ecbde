"""Other ops."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import scalar_shape

op("Fact", "-> fact: string", shape=scalar_shape, doc="Return a fact about factorials.")
