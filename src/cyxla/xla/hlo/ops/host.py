"""Opcodes with state or communication with the host: random numbers, feeds, sends."""

from __future__ import annotations

from cyxla.errors import DTypeError
from cyxla.types import TOKEN, ElementType, Shape
from cyxla.xla.hlo.opcode import FLOAT, INTEGER, PRED, REAL, UNSIGNED, Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import U32_0, same_dtype, same_value, stated

#: Opcodes that give values to the host or to another program, or take them.
HOST_TRANSFERS = frozenset({"infeed", "outfeed", "recv", "recv-done", "send", "send-done"})
_CHANNEL = (opt("channel_id", "int"), opt("is_host_transfer", "bool", False))
_STATE = Shape.array(ElementType.U64, (2,))
_DRAWN = {"rng_uniform": INTEGER | FLOAT | PRED, "rng_normal": FLOAT}
_STATE_WORDS = {"rng_three_fry": (2,), "rng_philox": (2, 3), "rng_default": (1, 2, 3)}


@opcode("rng", 2, side_effect=True, attrs=(req("distribution", "enum:rng_uniform,rng_normal"),))
def rng(site: Site) -> Shape:
    """The stated result.

    (C1) the operands are scalars; (C2) the result is a stated array; (C3) of their element type; (C4) for which the
    distribution is defined.
    """
    for i, s in enumerate(site.operands):
        site.require(s.is_scalar, "C1", f"operand {i} is {s}, not a scalar")
    result, distribution = stated(site, "C2"), site.attrs["distribution"]
    same_dtype(site, "C3", (*site.operands, result))
    site.require(
        result.dtype in _DRAWN[distribution], "C4", f"{distribution} is not drawn as {result.dtype}", DTypeError
    )
    return result


@opcode(
    "rng-bit-generator", 1, accepts=UNSIGNED, attrs=(req("algorithm", "enum:rng_default,rng_three_fry,rng_philox"),)
)
def rng_bit_generator(site: Site) -> Shape:
    """The stated result: the new state and the random bits.

    (C1) the state is a vector; (C2) of the number of u64 words of the algorithm; (C3) the result is stated as new state
    and random array; (C4) of integers or floats.
    """
    state, algorithm = site.operands[0], site.attrs["algorithm"]
    site.require(state.rank == 1, "C1", f"the state is {state}, not a vector")
    words = state.nbytes // 8
    site.require(
        words in _STATE_WORDS[algorithm] and state.nbytes % 8 == 0, "C2", f"{algorithm} does not take the state {state}"
    )
    result = stated(site, "C3", array=False)
    parts = result.elements if result.is_tuple else (state, result)
    fits = len(parts) == 2 and same_value(parts[0], state) and parts[1].is_array
    site.require(fits, "C3", f"the result is stated as {result} instead of ({state}, random bits)")
    site.require(parts[1].dtype in REAL, "C4", f"no random bits of {parts[1].dtype}", DTypeError)
    return result


@opcode("rng-get-and-update-state", 0, side_effect=True, attrs=(req("delta", "int"),))
def rng_get_and_update_state(site: Site) -> Shape:
    """No constraint: the result is u64[2]."""
    return _STATE


_OUTFEED = (opt("outfeed_shape", "shape"), opt("outfeed_config", "string", ""))


@opcode("infeed", 1, side_effect=True, attrs=(opt("infeed_config", "string", ""),), xla="InfeedWithToken")
def infeed(site: Site) -> Shape:
    """(C1) a token; (C2) the result is stated as data and token."""
    _token(site, "C1", 0)
    result = stated(site, "C2", array=False)
    fits = len(result.elements) == 2 and result.elements[1] is TOKEN
    site.require(fits, "C2", f"the result is stated as {result}, not as (data, token[])")
    return result


@opcode("outfeed", 2, side_effect=True, attrs=_OUTFEED, xla="OutfeedWithToken")
def outfeed(site: Site) -> Shape:
    """(C1) the second operand is a token; (C2) outfeed_shape is the shape of the first."""
    _token(site, "C1", 1)
    shape = site.attrs["outfeed_shape"]
    fits = shape is None or same_value(shape, site.operands[0])
    site.require(fits, "C2", f"outfeed_shape is {shape}, operand 0 {site.operands[0]}")
    return TOKEN


@opcode("send", 2, side_effect=True, attrs=_CHANNEL, xla="SendWithToken")
def send(site: Site) -> Shape:
    """(C1) the second operand is a token. The result is (data, context, token)."""
    _token(site, "C1", 1)
    return Shape.tuple([site.operands[0], U32_0, TOKEN])


@opcode("send-done", 1, side_effect=True, attrs=_CHANNEL)
def send_done(site: Site) -> Shape:
    """(C1) the result of send."""
    _transfer(site)
    return TOKEN


@opcode("recv", 1, side_effect=True, attrs=_CHANNEL, xla="RecvWithToken")
def recv(site: Site) -> Shape:
    """(C1) a token; (C2) the result is stated as (data, context, token)."""
    _token(site, "C1", 0)
    result = stated(site, "C2", array=False)
    site.require(_is_transfer(result), "C2", f"the result is stated as {result}, not as (data, u32[], token[])")
    return result


@opcode("recv-done", 1, side_effect=True, attrs=_CHANNEL)
def recv_done(site: Site) -> Shape:
    """(C1) the result of recv. The result is (data, token)."""
    _transfer(site)
    return Shape.tuple([site.operands[0].elements[0], TOKEN])


def _token(site: Site, label: str, i: int) -> None:
    site.require(site.operands[i] is TOKEN, label, f"operand {i} is {site.operands[i]}, not a token")


def _is_transfer(shape: Shape) -> bool:
    return len(shape.elements) == 3 and shape.elements[1] is U32_0 and shape.elements[2] is TOKEN


def _transfer(site: Site) -> None:
    site.require(_is_transfer(site.operands[0]), "C1", f"{site.operands[0]} is not (data, u32[], token[])")
