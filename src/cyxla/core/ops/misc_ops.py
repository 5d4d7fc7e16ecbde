"""The rest."""

from cyxla.core.framework.op import op

op("Fact", "-> fact: string", shape=None)
