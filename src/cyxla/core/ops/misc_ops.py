"""The rest."""

from cyxla.core.framework.common_shape_fns import scalar_shape
from cyxla.core.framework.op import op

op("Fact", "-> fact: string", shape=scalar_shape, doc="A fact about factorials.")
