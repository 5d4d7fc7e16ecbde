"""Parser and printer of shardings and iota device lists."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from cyxla.errors import InvalidArgumentError
from cyxla.xla.hlo.attributes import IotaTiles, Sharding
from cyxla.xla.hlo.limits import MAX_RANK
from cyxla.xla.hlo.text.lexer import WS, Cursor, Pattern
from cyxla.xla.hlo.text.mesh import at_mesh, read_named_sharding
from cyxla.xla.hlo.text.tile_assignment import canonical_sharding

_PLAIN = ("replicated", "manual", "unknown", "unreduced")
SUBGROUPS = ("replicated", "maximal", "manual", "unreduced", "unknown")
_LIST = Pattern(r"\[([0-9, \t\r\n]*+)\]")
_DEVICE = Pattern("device=")
_TRANSPOSE = Pattern(rf"T{WS}\(([0-9, \t\r\n]*+)\)")


def read_iota(c: Cursor) -> IotaTiles:
    """Read ``[2,2]<=[4]`` or ``[2,2]<=[2,2]T(1,0)``."""
    start = c.skip()
    dims = _sizes(c, "sizes of the device list")
    return _iota_after(c, dims, start)


def _sizes(c: Cursor, description: str) -> tuple[int, ...]:
    m = c.match(_LIST)
    if m is None:
        raise c.error(f"expected {description} such as [2,2], found {c.next_token()}")
    sizes = c.integers(m.group(1), "a size", m.start(1), 1)
    if len(sizes) > MAX_RANK:  # the product of very many sizes takes quadratic time
        raise c.error(f"{len(sizes)} {description}; the limit is {MAX_RANK}", m.start(1))
    return sizes


def _iota_after(c: Cursor, dims: tuple[int, ...], start: int) -> IotaTiles:
    c.expect("<=", "in a device list")
    reshape = _sizes(c, "the sizes after <=")
    m = c.match(_TRANSPOSE)
    transpose = c.integers(m.group(1), "a dimension", m.start(1), 0) if m else ()
    if m and sorted(transpose) != list(range(len(reshape))):
        raise c.error(f"T{transpose} is not an order of the {len(reshape)} dimensions after <=", m.start(1))
    if prod(dims) != prod(reshape):
        raise c.error(f"{list(dims)} and {list(reshape)} differ in the number of devices", start)
    if transpose == tuple(range(len(reshape))):
        transpose = ()
    return IotaTiles(dims, reshape, transpose)


def check_iota(iota: IotaTiles) -> IotaTiles:
    """Check the number of devices of an iota, and drop an identity transpose."""
    if max(len(iota.dims), len(iota.reshape)) > MAX_RANK:
        raise InvalidArgumentError(f"a list of devices of more than {MAX_RANK} dimensions")
    transpose = iota.transpose or tuple(range(len(iota.reshape)))
    positive = all(d > 0 for d in (*iota.dims, *iota.reshape))
    if not positive or prod(iota.dims) != prod(iota.reshape) or sorted(transpose) != list(range(len(iota.reshape))):
        raise InvalidArgumentError(f"{iota_text(iota)[:200]} is not a list of devices")
    return iota._replace(transpose=() if transpose == tuple(range(len(transpose))) else transpose)


def iota_text(iota: IotaTiles) -> str:
    """Return the text of an iota device list."""
    transpose_text = f"T({_join(iota.transpose)})" if iota.transpose else ""
    return f"[{_join(iota.dims)}]<=[{_join(iota.reshape)}]{transpose_text}"


def _join(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def read_sharding(c: Cursor) -> Sharding:
    """Read ``{replicated}``, ``{devices=[2,1]0,1}``, ``{mesh['x'=2], [{'x'}]}``, ``{{..}, {..}}`` and so on."""
    c.enter()
    c.expect("{", "at the start of a sharding")
    if c.at("{") or c.at("}"):
        sharding = Sharding("tuple", elements=_elements(c))
    else:
        sharding = read_named_sharding(c) if at_mesh(c) else _read_one(c)
    c.leave()
    return sharding


def _elements(c: Cursor) -> tuple[Sharding, ...]:
    parts: list[Sharding] = []
    while not c.accept("}"):
        if parts:
            c.expect(",", "between the shardings of a tuple")
        parts.append(read_sharding(c))
    return tuple(parts)


def _read_one(c: Cursor) -> Sharding:
    """Read the words up to the closing brace, in any order."""
    facts: dict[str, object] = {}
    start = c.skip()
    while not c.accept("}"):
        at = c.skip()
        word = c.name("a word of a sharding")
        if word == "maximal" and not _DEVICE.match(c.text, c.pos):
            raise c.error("expected device=N after maximal", at)
        result = _WORDS[word](c) if word in _WORDS else _instruction_of_row(c, word, at)
        for field, value in result.items():
            if field in facts:
                raise c.error(f"{word} cannot be combined with the preceding words", at)
            facts[field] = value
    if "kind" not in facts:
        raise c.error("a sharding is replicated, maximal, manual, unknown or devices=[..]", start)
    sharding = Sharding(**facts)  # type: ignore[arg-type]
    return _check_sharding(c, sharding, start)


def _instruction_of_row(c: Cursor, word: str, at: int) -> dict[str, object]:
    if word not in _PLAIN:
        raise c.error(f"{word!r} is not a keyword of shardings", at)
    return {"kind": word}


def _maximal(c: Cursor) -> dict[str, object]:
    c.match(_DEVICE)
    return {"kind": "maximal", "devices": (c.integer("a device", 0),)}


def _devices(c: Cursor) -> dict[str, object]:
    c.expect("=", "after devices")
    start = c.skip()
    dims = _sizes(c, "sizes of the tile assignment")
    if c.at("<="):
        return {"kind": "devices", "tile_dims": dims, "iota": _iota_after(c, dims, start)}
    devices = [c.integer("a device", 0)]
    while c.accept(","):
        devices.append(c.integer("a device", 0))
    return {"kind": "devices", "tile_dims": dims, "devices": tuple(devices)}


def _last_tile_dims(c: Cursor) -> dict[str, object]:
    c.expect("=", "after last_tile_dims")
    c.expect("{", "after last_tile_dims=")
    kinds: list[str] = []
    while not c.accept("}"):
        if kinds:
            c.expect(",", "between the kinds of last_tile_dims")
        at = c.skip()
        kinds.append(c.name("the kind of a tile dimension"))
        if kinds[-1] not in SUBGROUPS:
            raise c.error(f"{kinds[-1]!r} is not a kind of tile dimension", at)
    return {"last_tile_dims": tuple(kinds)}


def _metadata(c: Cursor) -> dict[str, object]:
    c.expect("=", "after metadata")
    return {"metadata": (c.braces("metadata"),)}


_WORDS: dict[str, Callable[[Cursor], dict[str, object]]] = {
    "maximal": _maximal,
    "devices": _devices,
    "last_tile_dims": _last_tile_dims,
    "last_tile_dim_replicate": lambda c: {"last_tile_dim_replicate": True},
    "shard_as": lambda c: {"shard_group": ("shard_as", c.integer("a shard group", 0))},
    "shard_like": lambda c: {"shard_group": ("shard_like", c.integer("a shard group", 0))},
    "metadata": _metadata,
}


def _check_sharding(c: Cursor, sharding: Sharding, at: int) -> Sharding:
    subgroups = len(sharding.last_tile_dims) + sharding.last_tile_dim_replicate
    if subgroups and sharding.kind != "devices":
        raise c.error("only devices=[..] has subgroups", at)
    if subgroups > len(sharding.tile_dims):
        raise c.error(f"{subgroups} subgroups of {len(sharding.tile_dims)} tile dimensions", at)
    if sharding.last_tile_dims and sharding.last_tile_dim_replicate:
        raise c.error("last_tile_dims and last_tile_dim_replicate exclude each other", at)
    if sharding.kind == "devices" and sharding.iota is None and len(sharding.devices) != prod(sharding.tile_dims):
        raise c.error(f"{len(sharding.devices)} devices for tiles of {list(sharding.tile_dims)}", at)
    if len(sharding.devices) == 1 and sharding.kind == "devices":
        raise c.error("a list of devices has more than one; for one write maximal", at)
    if len(sharding.tile_dims) > 32:
        raise c.error("tiles of more than 32 dimensions", at)
    return canonical_sharding(sharding)


def sharding_text(sharding: Sharding) -> str:
    """Return the text of a sharding with its braces; metadata is left out, as in XLA."""
    if sharding.kind == "tuple":
        return "{" + ", ".join(map(sharding_text, sharding.elements)) + "}"
    if sharding.kind == "named":
        return "{" + sharding.named + "}"
    words = [_kind_text(sharding)]
    if sharding.last_tile_dim_replicate:
        words.append("last_tile_dim_replicate")
    if sharding.last_tile_dims:
        words.append("last_tile_dims={" + ", ".join(sharding.last_tile_dims) + "}")
    if sharding.shard_group:
        words.append(f"{sharding.shard_group[0]} {sharding.shard_group[1]}")
    return "{" + " ".join(words) + "}"


def _kind_text(sharding: Sharding) -> str:
    if sharding.kind == "maximal":
        return f"maximal device={sharding.devices[0]}"
    if sharding.kind != "devices":
        return sharding.kind
    if sharding.iota:
        return "devices=" + iota_text(sharding.iota)
    return f"devices=[{_join(sharding.tile_dims)}]{_join(sharding.devices)}"
