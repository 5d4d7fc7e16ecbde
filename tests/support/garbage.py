"""Collection of garbage that is certain to have taken place."""

import gc


def collect():
    """Collect all garbage; `gc.collect` does nothing while another thread collects, such as one that compiles."""
    before = _full_collections()
    while _full_collections() == before:
        gc.collect()


def _full_collections():
    return gc.get_stats()[-1]["collections"]
