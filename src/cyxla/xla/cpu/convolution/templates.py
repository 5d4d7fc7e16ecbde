"""Instances of the headers of convolutions, ``include/cyxla/kernels/convolution``.

The build of the package makes those that come prebuilt (`prebuilt.convolution`), an emitter those of its own program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyxla.records import dataclass
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.convolution.row_parameters import RANK, convolution_rows
from cyxla.xla.cpu.convolution.tile_parameters import BLOCK, convolution
from cyxla.xla.cpu.dot.templates import ITEM_BYTES, after_type, vector_types

_TILE_ARGUMENTS = (
    "const {p}_numbers *, const {p}_block *, const {p}_e *const *, const {p}_e *, {p}_e *restrict, const {p}_e *"
)
_ROW_TILE_ARGUMENTS = "const {p}_numbers *, const {p}_e *, const {p}_e *, const int64_t *, {p}_e *restrict, int64_t"
_CONSTANT_ROW_TILE_ARGUMENTS = "void *const *, const {p}_e *, const {p}_e *, const int64_t *, int64_t, int64_t"
_WINDOW_TYPE = """typedef struct {{
  void (*origins)(const {p}_numbers *, const {p}_e *, int64_t, int64_t, const {p}_e **, int32_t *);
  void (*addresses)(const {p}_numbers *, const {p}_e *const *, const int32_t *, int64_t, int64_t, const {p}_e **);
  int (*has_nans)(const {p}_numbers *, const int32_t *, int64_t, int64_t, int64_t, const {p}_e *);
}} {p}_window;"""


@dataclass(frozen=True)
class Convolution:
    """Texts of tiled convolutions.

    Attributes
    ----------
    prefix, element : str
        Prefix of all names, and C type of an element.
    vector_bytes, registers : int
        Size of a vector in bytes, and number of vector registers.
    rank, depth : int
        Largest number of spatial dimensions, and largest number of input features.
    sizes : mapping of str to int or None
        The parameters if they are constants; None if they arrive at run time.
    prefetches : bool
        True if tiles prefetch the next block of weights.
    """

    prefix: str
    element: str
    vector_bytes: int
    registers: int
    rank: int
    depth: int
    sizes: Mapping[str, int] | None = None
    prefetches: bool = False

    @property
    def types(self) -> list[str]:
        """Definitions of the types, and of the sizes if they are constants."""
        prefix, numbers = self.prefix, f"{self.prefix}_numbers"
        struct = convolution(self.rank)
        sizes = [] if self.sizes is None else [struct.constant(numbers, f"{prefix}_sizes", self.sizes)]
        return [
            *vector_types(prefix, self.element, self.vector_bytes),
            struct.typedef(numbers),
            BLOCK.typedef(f"{prefix}_block"),
            *_WINDOW_TYPE.format(p=prefix).splitlines(),
            f"typedef void (*{prefix}_tile)({_TILE_ARGUMENTS.format(p=prefix)});",
            after_type(prefix, self.element),
            *sizes,
        ]

    def windows(self, ranks: Sequence[int], *, dilated: bool = False, scalar: bool = False) -> str:
        """Return the functions of windows and their table.

        Parameters
        ----------
        ranks : sequence of int
            Numbers of dimensions.
        dilated : bool
            True if the input has a base dilation.
        scalar : bool
            True if vectors of addresses are not worth compiling.
        """
        instances = [
            instantiate(
                "convolution/convolution_window.h",
                self._members,
                WINDOW_PREFIX=self.prefix,
                WINDOW_RANK=rank,
                WINDOW_DILATED=int(dilated),
                WINDOW_SCALAR=int(scalar),
                WINDOW_LEAVES=self._leaves,
                WINDOW_CONSTANT=self._constant,
            )
            for rank in ranks
        ]
        tables = (
            [f"{self.prefix}_{name}_{rank}" for name in ("origins", "addresses", "has_nans")[: 2 + self._leaves]]
            for rank in ranks
        )
        members = ("{" + ", ".join(names if self._leaves else [*names, "0"]) + "}" for names in tables)
        zeros = f"static {self.element} {self.prefix}_zeros[{self.depth}];\n"
        table = f"static const {self.prefix}_window {self.prefix}_windows[] = {{{', '.join(members)}}};\n"
        return zeros + "".join(instances) + table

    def tiles(self, shapes: Sequence[tuple[int, int]]) -> str:
        """Return the functions of tiles, given their positions and vectors, and their table."""
        names = [f"{self.prefix}_tile{rows}x{vectors}" for rows, vectors in shapes]
        table = f"static const {self.prefix}_tile {self.prefix}_tiles[] = {{{', '.join(names)}}};\n"
        return "".join(self._tile(name, *shape) for name, shape in zip(names, shapes, strict=True)) + table

    def run(self) -> str:
        """Return C of ``{prefix}_run(numbers, bufs, begin, end, after)``."""
        return instantiate(
            "convolution/convolution.h",
            self._members,
            CONVOLUTION_PREFIX=self.prefix,
            CONVOLUTION_ELEMENT=self.element,
            CONVOLUTION_LANES=self._lanes,
            CONVOLUTION_PREFETCH=int(self.prefetches),
            CONVOLUTION_LEAVES=self._leaves,
            CONVOLUTION_CONSTANT=self._constant,
        )

    def _tile(self, name: str, rows: int, vectors: int) -> str:
        prototype = f"static __attribute__((noinline)) void {name}({_TILE_ARGUMENTS.format(p=self.prefix)});\n"
        return prototype + instantiate(
            "convolution/convolution_tile.h",
            self._members,
            TILE_NAME=name,
            TILE_PREFIX=self.prefix,
            TILE_ELEMENT=self.element,
            TILE_ROWS=rows,
            TILE_VECTORS=vectors,
            TILE_LANES=self._lanes,
            TILE_HALVES=int((rows + 1) * vectors + 1 > self.registers),
            TILE_PREFETCH=int(self.prefetches),
            TILE_CONSTANT=0 if self.sizes is None else 1 + (self.sizes["blocks"] > 1),
        )

    @property
    def _lanes(self) -> int:
        return self.vector_bytes // ITEM_BYTES[self.element]

    @property
    def _members(self) -> dict[str, int] | None:
        return None if self.sizes is None else convolution(self.rank).members(self.sizes)

    @property
    def _leaves(self) -> int:
        return int(self.sizes is None or self.sizes["leaves"] > 0)

    @property
    def _constant(self) -> int:
        return int(self.sizes is not None)


@dataclass(frozen=True)
class RowConvolution:
    """Texts of row-wise convolutions.

    Attributes
    ----------
    prefix, element : str
        Prefix of all names, and C type of an element.
    vector_bytes : int
        Size of a vector in bytes.
    rank : int
        Number of spatial dimensions.
    sizes : mapping of str to int or None
        The parameters if they are constants; None if they arrive at run time.
    dilated : bool
        True if the input has a base dilation.
    chain : int
        Number of products after which sums are added to totals; 0 if sums are not that long.
    """

    prefix: str
    element: str
    vector_bytes: int
    rank: int = RANK
    sizes: Mapping[str, int] | None = None
    dilated: bool = False
    chain: int = 0

    @property
    def types(self) -> list[str]:
        """Definitions of the types, and of the sizes if they are constants."""
        prefix, numbers, struct = self.prefix, f"{self.prefix}_numbers", convolution_rows(self.rank)
        return [
            *vector_types(prefix, self.element, self.vector_bytes),
            struct.typedef(numbers),
            f"typedef void (*{prefix}_tile)({self._arguments});",
            after_type(prefix, self.element),
            *([] if self.sizes is None else [struct.constant(numbers, f"{prefix}_sizes", self.sizes)]),
        ]

    def tile(self, name: str, positions: int, vectors: int, depthwise: bool, after: str = "0") -> str:
        """Return the function of a tile; if sizes are constants, it passes its sums to the function `after`."""
        prototype = f"static __attribute__((noinline)) void {name}({self._arguments});\n"
        return prototype + instantiate(
            "convolution/convolution_row_tile.h",
            self._members,
            TILE_NAME=name,
            TILE_PREFIX=self.prefix,
            TILE_ELEMENT=self.element,
            TILE_POSITIONS=positions,
            TILE_VECTORS=vectors,
            TILE_LANES=self._lanes,
            TILE_DEPTHWISE=int(depthwise),
            TILE_RANK=self.rank,
            TILE_CONSTANT=int(self.sizes is not None),
            TILE_AFTER=after,
            TILE_DILATED=int(self.dilated),
            TILE_CHAIN=self.chain,
        )

    def tiles(self, shapes: Sequence[tuple[int, int, bool]]) -> str:
        """Return the functions of tiles, of positions by vectors, depthwise or not, and their table."""
        names = [f"{self.prefix}_{'depthwise' if shape[2] else 'tile'}{shape[0]}x{shape[1]}" for shape in shapes]
        text = "".join(self.tile(name, *shape) for name, shape in zip(names, shapes, strict=True))
        return f"{text}static const {self.prefix}_tile {self.prefix}_tiles[] = {{{', '.join(names)}}};\n"

    def run(self, most_vectors: int) -> str:
        """Return C of ``{prefix}_run(numbers, bufs, begin, end, after)``, given the most vectors of a tile."""
        return instantiate(
            "convolution/convolution_rows.h",
            ROWS_PREFIX=self.prefix,
            ROWS_ELEMENT=self.element,
            ROWS_SUMS=most_vectors * self._lanes,
        )

    @property
    def _arguments(self) -> str:
        """Types of the arguments of a tile."""
        arguments = _ROW_TILE_ARGUMENTS if self.sizes is None else _CONSTANT_ROW_TILE_ARGUMENTS
        return arguments.format(p=self.prefix)

    @property
    def _lanes(self) -> int:
        return self.vector_bytes // ITEM_BYTES[self.element]

    @property
    def _members(self) -> dict[str, int] | None:
        return None if self.sizes is None else convolution_rows(self.rank).members(self.sizes)
