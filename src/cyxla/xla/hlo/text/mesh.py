"""Parser and printer of meshes: ``mesh['x'=2,'y'=4]``, shardings by mesh axes, device groups along mesh axes."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from cyxla.xla.hlo.attributes import IotaTiles, ReplicaGroups, Sharding
from cyxla.xla.hlo.limits import MAX_RANK
from cyxla.xla.hlo.text.lexer import WS, Cursor, Pattern
from cyxla.xla.hlo.text.tile_assignment import canonical_iota

_MESH = Pattern(rf"(mesh|maximal_mesh){WS}\[")
_NAME = Pattern(r"(?:'([^'\n]*+)'|\"([^\"\n]*+)\")")
_DEVICE_ID = Pattern(rf"device_id{WS}=")
_DEVICE_IDS = Pattern(rf",{WS}device_ids{WS}={WS}\(")
_IOTA = Pattern(rf"\[([0-9, \t\r\n]*+)\]{WS}(?:T{WS}\(([0-9, \t\r\n]*+)\))?")
_WORD = Pattern(r"(replicated|manual|unreduced)(?![\w.\-])")
_ATTRIBUTE = Pattern(rf",{WS}(replicated|unreduced|manual|metadata){WS}=")
_REDUCTION = Pattern(r"(sum|max|min)(?![\w.\-])")
_MOST_DEVICES = 1 << 20


class Mesh(NamedTuple):
    """A grid of devices.

    Attributes
    ----------
    axes : tuple of (str, int)
        Name and size of each axis; empty for a single device and for no mesh.
    devices : tuple of int
        Device numbers in row-major order; empty if they are 0, 1, ..
    reshape, transpose : tuple of int
        Device numbers as an iota over `reshape`, transposed, instead of `devices`.
    """

    axes: tuple[tuple[str, int], ...] = ()
    devices: tuple[int, ...] = ()
    reshape: tuple[int, ...] = ()
    transpose: tuple[int, ...] = ()

    @property
    def is_maximal(self) -> bool:
        """True for a single device."""
        return not self.axes and len(self.devices) == 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(size for _, size in self.axes)

    def text(self) -> str:
        """Return the text of the mesh."""
        if self.is_maximal:
            return f"maximal_mesh[device_id={self.devices[0]}]"
        axes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        if self.reshape:
            transpose_text = f"T({_join(self.transpose)})" if self.transpose else ""
            return f"mesh[{axes}], device_ids=([{_join(self.reshape)}]{transpose_text})"
        return f"mesh[{axes}]" + (f", device_ids=({_join(self.devices)})" if self.devices else "")


class Axis(NamedTuple):
    """A mesh axis, or the sub-axis ``(pre_size)size`` of it; a `size` of 0 is the whole axis."""

    number: int
    pre_size: int = 1
    size: int = 0

    def text(self, mesh: Mesh) -> str:
        """Return the text of the axis."""
        part = f":({self.pre_size}){self.size}" if self.size else ""
        return f"'{mesh.axes[self.number][0]}'{part}"


def _join(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def at_mesh(c: Cursor) -> bool:
    """Return True if a mesh is next."""
    return _MESH.match(c.text, c.pos) is not None


def _read_mesh(c: Cursor) -> Mesh:
    start = c.skip()
    m = c.match(_MESH)
    assert m is not None
    if m.group(1) == "maximal_mesh":
        if c.match(_DEVICE_ID) is None:
            raise c.error(f"expected device_id=, found {c.next_token()}")
        device = c.integer("a device", 0)
        c.expect("]", "at the end of a mesh")
        return Mesh(devices=(device,))
    axes: list[tuple[str, int]] = []
    while not c.accept("]"):
        if axes:
            c.expect(",", "between the axes of a mesh")
        name = _name(c)
        c.expect("=", "after the name of an axis")
        axes.append((name, c.integer("the size of an axis", 1)))
    if len(axes) > MAX_RANK:
        raise c.error(f"{len(axes)} axes of a mesh; {MAX_RANK} is the limit", start)
    mesh = Mesh(tuple(axes))
    return _with_devices(c, mesh, start) if axes and c.match(_DEVICE_IDS) else mesh


def _name(c: Cursor) -> str:
    m = c.match(_NAME)
    if m is None:
        raise c.error(f"expected the name of an axis in quotes, found {c.next_token()}")
    return str(m.group(1) if m.group(1) is not None else m.group(2))


def _with_devices(c: Cursor, mesh: Mesh, start: int) -> Mesh:
    m = c.match(_IOTA)
    if m is not None:
        reshape = c.integers(m.group(1), "a size", m.start(1), 1)
        order = c.integers(m.group(2), "a dimension", m.start(2), 0) if m.group(2) is not None else ()
        if len(reshape) > MAX_RANK or (order and sorted(order) != list(range(len(reshape)))):
            raise c.error("malformed numbers of devices", m.start(1))
        mesh = mesh._replace(reshape=reshape, transpose=order)
        count = prod(reshape)
    else:
        devices = [c.integer("a device", 0)]
        while c.accept(","):
            devices.append(c.integer("a device", 0))
        mesh = mesh._replace(devices=tuple(devices))
        count = len(devices)
    c.expect(")", "after the devices of a mesh")
    if count != prod(mesh.sizes):
        raise c.error(f"{count} devices for a mesh of {' x '.join(map(str, mesh.sizes))}", start)
    return mesh


def _read_axis(c: Cursor, mesh: Mesh) -> Axis:
    start = c.skip()
    name = _name(c)
    names = [n for n, _ in mesh.axes]
    number = names.index(name) if name in names else int(name) if name.isdecimal() and len(name) < 5 else len(names)
    if number >= len(names):
        raise c.error(f"{name[:40]!r} is not an axis of {mesh.text()[:80]}", start)
    if not c.accept(":"):
        return Axis(number)
    c.expect("(", "in the size before a part of an axis")
    pre_size = c.integer("a size", 1)
    c.expect(")", "after the size before a part of an axis")
    size = c.integer("the size of a part of an axis", 2)
    if mesh.axes[number][1] % (pre_size * size):
        raise c.error(f"({pre_size}){size} does not divide an axis of {mesh.axes[number][1]}", start)
    return Axis(number, pre_size, size)


def _read_axes(c: Cursor, mesh: Mesh, *, may_be_open: bool = False) -> tuple[tuple[Axis, ...], bool]:
    """Read ``{'x', 'y':(1)2}``; with ``?`` at the end, if `may_be_open`, they are open."""
    c.expect("{", "at the start of axes")
    axes: list[Axis] = []
    is_open = False
    while not c.accept("}"):
        if axes or is_open:
            c.expect(",", "between axes")
        if is_open:
            raise c.error("an axis after '?'")
        is_open = may_be_open and c.accept("?")
        if not is_open:
            axes.append(_read_axis(c, mesh))
    return tuple(axes), is_open


def _axes_text(mesh: Mesh, axes: tuple[Axis, ...], is_open: bool = False) -> str:
    return "{" + ", ".join([*(a.text(mesh) for a in axes), *(["?"] if is_open else [])]) + "}"


def read_named_sharding(c: Cursor) -> Sharding:
    """Read a sharding by mesh axes after its ``{``, up to its ``}``."""
    mesh = _read_mesh(c)
    if not mesh.is_maximal:
        c.accept(",")
    word = c.match(_WORD) if not mesh.is_maximal else None
    if word is not None:
        words = _for_all_dimensions(c, mesh, word.group(1))
    else:
        words = [mesh.text()] if mesh.is_maximal else _for_each_dimension(c, mesh)
    while (m := c.match(_ATTRIBUTE)) is not None and m.group(1) == "metadata":
        c.braces("metadata")
    c.expect("}", "at the end of a sharding")
    return Sharding("replicated") if words == ["replicated"] else Sharding("named", named=", ".join(words))


def _for_all_dimensions(c: Cursor, mesh: Mesh, word: str) -> list[str]:
    """Return the text of a word for all dimensions; ``replicated`` needs no mesh."""
    if word == "replicated":
        return [word]
    if word == "unreduced":
        word += _reduction_text(c) if c.accept("=") else ""
        word += " " + _axes_text(mesh, _read_axes(c, mesh)[0]) if c.at("{") else ""
    return [mesh.text(), word]


def _reduction_text(c: Cursor) -> str:
    m = c.match(_REDUCTION)
    if m is None:
        raise c.error(f"expected sum, max or min, found {c.next_token()}")
    return f"={m.group(1)}" if m.group(1) != "sum" else ""


def _for_each_dimension(c: Cursor, mesh: Mesh) -> list[str]:
    c.expect("[", "before the axes of each dimension")
    dimensions: list[str] = []
    while not c.accept("]"):
        if dimensions:
            c.expect(",", "between the axes of dimensions")
        dimensions.append(_axes_text(mesh, *_read_axes(c, mesh, may_be_open=True)))
    extra_axes: dict[str, str] = {}
    while (m := c.match(_ATTRIBUTE)) is not None:
        word = m.group(1)
        if word == "metadata":
            c.braces(word)
            continue
        if word in extra_axes:
            raise c.error(f"{word} appears twice in a sharding", m.start(1))
        reduction = _reduction_text(c)[1:] if word == "unreduced" and not c.at("{") else ""
        extra_axes[word] = f"{word}={reduction}{_axes_text(mesh, _read_axes(c, mesh)[0])}"
    extra_texts = [extra_axes[word] for word in ("replicated", "unreduced", "manual") if word in extra_axes]
    return [mesh.text(), "[" + ", ".join(dimensions) + "]", *extra_texts]


def read_mesh_groups(c: Cursor) -> ReplicaGroups:
    """Read ``mesh['x'=2,'y'=4] {'y'}``: devices that differ only along these axes form a group."""
    start = c.skip()
    mesh = _read_mesh(c)
    axes, _ = _read_axes(c, mesh)
    split_axes = _split_axes(mesh, axes)
    if split_axes is None:
        raise c.error("axes that overlap", start)
    sizes, grouped = split_axes
    order = (*(d for d in range(len(sizes)) if d not in grouped), *grouped)
    group_size = prod(sizes[d] for d in grouped)
    dims = (prod(sizes) // group_size, group_size)
    if not (mesh.devices or mesh.reshape):
        return ReplicaGroups(iota=canonical_iota(IotaTiles(dims, sizes, order)))
    if prod(sizes) > _MOST_DEVICES:
        raise c.error(f"{prod(sizes)} devices with an explicit order; the limit is {_MOST_DEVICES}", start)
    devices = np.array(mesh.devices or np.arange(prod(mesh.reshape)))
    if mesh.reshape:
        devices = devices.reshape(mesh.reshape).transpose(mesh.transpose or range(len(mesh.reshape)))
    rows = devices.reshape(sizes).transpose(order).reshape(dims)
    return ReplicaGroups(tuple(tuple(map(int, row)) for row in rows))


def _split_axes(mesh: Mesh, axes: tuple[Axis, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Split axes into sub-axes; return all sizes and the numbers of `axes` among them, None if they overlap."""
    sizes: list[int] = []
    numbers: dict[Axis, int] = {}
    for number, (_, axis_size) in enumerate(mesh.axes):
        done = 1
        for axis in sorted(a for a in axes if a.number == number):
            size = axis.size or axis_size
            if axis.pre_size % done or axis in numbers or done * size > axis_size:
                return None
            sizes.append(axis.pre_size // done)
            numbers[axis] = len(sizes)
            sizes.append(size)
            done = axis.pre_size * size
        sizes.append(axis_size // done)
    return tuple(sizes), tuple(numbers[a] for a in axes)
