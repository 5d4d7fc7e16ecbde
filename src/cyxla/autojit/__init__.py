"""Just-in-time compilation of graphs: of whole graphs, or of the clusters that can be compiled."""

from cyxla.core.framework.loaders import register_loaders


def _load_pullbacks() -> None:
    from cyxla.numpy.gradient import pullbacks  # which registers itself

    _ = pullbacks


register_loaders(pullbacks=_load_pullbacks)
