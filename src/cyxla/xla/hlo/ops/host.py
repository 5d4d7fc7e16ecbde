"""Opcodes with state or with the host at the other end: random numbers, feeds, sends."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import ANY, UNSIGNED, opcode, opt, req

# fmt: off
opcode("rng",                      2, side_effect=True, attrs=(req("distribution", "enum:rng_uniform,rng_normal"),))
opcode("rng-bit-generator",        1, accepts=UNSIGNED, attrs=(req("algorithm", "enum:rng_default,rng_three_fry,rng_philox"),))
opcode("rng-get-and-update-state", 0, side_effect=True, attrs=(req("delta", "int"),))
opcode("infeed",                   1, side_effect=True, attrs=(opt("infeed_config", "string", ""),))
opcode("outfeed",                  2, side_effect=True, attrs=(opt("outfeed_shape", "shape"), opt("outfeed_config", "string", "")))
_CHANNEL = (opt("channel_id", "int"), opt("is_host_transfer", "bool", False))
opcode("send",                     2, side_effect=True, attrs=_CHANNEL)
opcode("send-done",                1, side_effect=True, attrs=_CHANNEL)
opcode("recv",                     1, side_effect=True, attrs=_CHANNEL)
opcode("recv-done",                1, side_effect=True, attrs=_CHANNEL)
# fmt: on
_ = ANY
