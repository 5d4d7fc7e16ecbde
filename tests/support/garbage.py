"""Collection of garbage that is certain to have taken place."""

import gc
import weakref


class _Cycle:
    def __init__(self):
        self.itself = self


def collect():
    """Collect all garbage; `gc.collect` does nothing while another thread collects, such as one that compiles."""
    cycle = weakref.ref(_Cycle())
    while cycle() is not None:
        gc.collect()
