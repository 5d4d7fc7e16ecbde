"""Search among variants of heavy kernels by measurement, for programs compiled with ``autotune=True``.

* `tuner`: finds the kernels of a program that have variants, and decides on each;
* `sites`: kernels with variants, and programs of one of them alone;
* `search`: measures variants in turn with the default;
* `records`: results of measurements in the disk cache.

See docs/adr/0014-autotuning.md.
"""
