"""Importing this registers every emitter."""

from importlib import import_module

#: Modules that register emitters with `cyxla.xla.cpu.emitters`.
EMITTERS = (
    "emit_convolution", "emit_custom_call", "emit_dot", "emit_fft", "emit_linalg", "emit_loop", "emit_reduce",
    "emit_rng", "emit_rows", "emit_scatter", "emit_select_and_scatter", "emit_sort", "emit_topk",
    "emit_window_scatter",
)  # fmt: skip

for _name in EMITTERS:
    import_module(f"cyxla.xla.cpu.{_name}")
