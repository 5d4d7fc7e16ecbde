"""Instances of the headers of products, ``include/cyxla/kernels/dot``.

The build of the package makes those that come prebuilt (`prebuilt.dot`), an emitter those of its own program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from cyxla.records import dataclass
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.c.parameter_struct import ParameterStruct
from cyxla.xla.cpu.dot.parameters import DOT, INNER, INNER_BYTES, MAX_COMBINATIONS, PREFETCH_BYTES, ROW_SUMS, TILE

ITEM_BYTES = {"float": 4, "double": 8}  # by C type
PANEL_UNITS, ANY_UNITS = range(2)  # DOT_UNITS
NO_PACK, PACK_ROWS, PACK_ANY = 0, 1, 2  # DOT_PACK
NO_PREFETCH, PREFETCH_NEXT_PANEL = 0, 1  # TILE_PREFETCH

_TILE_ARGUMENTS = (
    "const {p}_tile *s, const {p}_e *restrict a, const {p}_e *restrict b, {p}_e *restrict o, const char *prefetched, "
    "int64_t tiles"
)
_AFTER_ARGUMENTS = "void *const *, int64_t, int64_t, int64_t, const {element} *, int64_t"
_FEW_ROWS_ARGUMENTS = "const {p}_numbers *, const {p}_e *restrict, const {p}_e *restrict, {p}_e *restrict"


def vector_types(prefix: str, element: str, vector_bytes: int) -> list[str]:
    """Return the definitions of vectors, of vectors at any address, and of elements at any address.

    Their names are ``{prefix}_v``, ``{prefix}_u`` and ``{prefix}_e``.
    """
    return [
        f"typedef {element} {prefix}_v __attribute__((vector_size({vector_bytes})));",
        f"typedef {element} {prefix}_u __attribute__((vector_size({vector_bytes}), aligned(1), may_alias));",
        f"typedef {element} {prefix}_e __attribute__((aligned(1), may_alias));",
    ]


def types(prefix: str, element: str, vector_bytes: int) -> list[str]:
    """Return the definitions of the types that ``dot.h`` and ``dot_tile.h`` ask for."""
    return [
        *vector_types(prefix, element, vector_bytes),
        DOT.typedef(f"{prefix}_numbers"),
        TILE.typedef(f"{prefix}_tile"),
        f"typedef void (*{prefix}_tile_function)({_TILE_ARGUMENTS.format(p=prefix)});",
        after_type(prefix, element),
    ]


def after_type(prefix: str, element: str) -> str:
    """Return the definition of ``{prefix}_after_function``, the type of the functions of epilogues."""
    return f"typedef void (*{prefix}_after_function)({_AFTER_ARGUMENTS.format(element=element)});"


@dataclass(frozen=True)
class TileText:
    """One function of ``dot_tile.h``.

    Attributes
    ----------
    prefix, element : str
        Prefix of the types, and C type of an element.
    lanes : int
        Elements of a vector.
    name : str
        Name of the function.
    rows, vectors : int
        Size of the tile.
    cut : int
        Elements of the last vector that are stored; 0: all.
    columns : bool
        True if elements of a column of the left operand are neighbours, for sizes that arrive at run time.
    prefetch : int
        NO_PREFETCH or PREFETCH_NEXT_PANEL.
    sizes : mapping of str to int or None
        Constants among the members of `TILE`; None if all arrive at run time.
    linked : bool
        True if the sizes of a block of k arrive at run time.
    """

    prefix: str
    element: str
    lanes: int
    name: str
    rows: int
    vectors: int
    cut: int = 0
    columns: bool = False
    prefetch: int = NO_PREFETCH
    sizes: Mapping[str, int] | None = None
    linked: bool = True

    @property
    def prototype(self) -> str:
        """Declaration of the function."""
        return f"static __attribute__((noinline)) void {self.name}({_TILE_ARGUMENTS.format(p=self.prefix)});\n"

    @property
    def text(self) -> str:
        """Definition of the function, and of the constants among its sizes."""
        constants, constant = "", 0
        if self.sizes is not None:
            constants = TILE.constant(f"{self.prefix}_tile", f"{self.name}_sizes", self.sizes) + "\n"
            constant = 2 if self.linked else 1
        return constants + instantiate(
            "dot/dot_tile.h",
            None if self.sizes is None else TILE.members(self.sizes),
            TILE_NAME=self.name,
            TILE_PREFIX=self.prefix,
            TILE_ELEMENT=self.element,
            TILE_ROWS=self.rows,
            TILE_VECTORS=self.vectors,
            TILE_LANES=self.lanes,
            TILE_TAIL=self.cut,
            TILE_CONSTANT=constant,
            TILE_COLUMNS=int(self.columns),
            TILE_PREFETCH=self.prefetch,
        )


def dot_text(
    prefix: str, element: str, lanes: int, tile_room: int, units: int = ANY_UNITS, pack: int = PACK_ANY,
    constants: Mapping[str, int] | None = None, store: int = 0, sums: int = 0, live: int = 0,
) -> str:  # fmt: skip
    """Return C of ``{prefix}_run(numbers, bufs, begin, end, after)``; the tiles are in a table ``{prefix}_tiles``.

    Parameters
    ----------
    prefix, element : str
        Prefix of all names, and C type of an element.
    lanes : int
        Elements of a vector.
    tile_room : int
        Most elements of a tile.
    units : int
        PANEL_UNITS or ANY_UNITS.
    pack : int
        One of NO_PACK, PACK_ROWS and PACK_ANY.
    constants : mapping of str to int or None
        The members of `DOT` if they are constants; None if they arrive at run time.
    store, sums : int
        Elements of packed panels and of sums on the stack, if the numbers are constants.
    live : int
        1 if functions tell the part of the product that matters (see `live_products`), 2 if sums stop early, too.
    """
    defined = "" if constants is None else DOT.constant(f"{prefix}_numbers", f"{prefix}_constants", constants) + "\n"
    return defined + instantiate(
        "dot/dot.h",
        None if constants is None else DOT.members(constants),
        DOT_PREFIX=prefix,
        DOT_ELEMENT=element,
        DOT_LANES=lanes,
        DOT_CONSTANT=int(constants is not None),
        DOT_TILES=f"{prefix}_tiles",
        DOT_MAX_TILE=tile_room,
        DOT_UNITS=units,
        DOT_PACK=pack,
        DOT_TRANSPOSE=f"cyx_tile_{ITEM_BYTES[element]}" if pack == PACK_ANY else "0",
        DOT_PACKED_ELEMENTS=store,
        DOT_SUM_ELEMENTS=sums,
        DOT_LIVE=live,
    )


@dataclass(frozen=True)
class FewRows(ABC):
    """Texts of products of few rows.

    Attributes
    ----------
    prefix, element : str
        Prefix of all names, and C type of an element.
    vector_bytes : int
        Size of a vector in bytes.
    sizes : mapping of str to int or None
        The members of `parameters` if they are constants; None if they arrive at run time.
    stops : bool
        True if these are the sizes of the whole product, but sums may stop early: all sizes arrive at run time.
    """

    parameters: ClassVar[ParameterStruct]
    more_arguments: ClassVar[str] = ""  # types of a micro-kernel's last arguments

    prefix: str
    element: str
    vector_bytes: int
    sizes: Mapping[str, int] | None = None
    stops: bool = False

    @property
    def types(self) -> list[str]:
        """Definitions of the types, and of the sizes if they are constants."""
        numbers = f"{self.prefix}_numbers"
        sizes = [] if self.sizes is None else [self.parameters.constant(numbers, f"{self.prefix}_sizes", self.sizes)]
        return [
            *vector_types(self.prefix, self.element, self.vector_bytes),
            self.parameters.typedef(numbers),
            f"typedef void (*{self.prefix}_function)({self._arguments});",
            after_type(self.prefix, self.element),
            *sizes,
        ]

    def run(self, functions: Sequence[str], sums: int = 0, *, live: bool = False) -> str:
        """Return C of ``{prefix}_run(numbers, bufs, begin, end, after)``, given the functions by form.

        Parameters
        ----------
        functions : sequence of str
            Names of the micro-kernels.
        sums : int
            Number of elements of a block that an epilogue takes; 0 if there is none.
        live : bool
            True if functions tell the part of the product that matters (see `live_products`).
        """
        table = f"static const {self.prefix}_function {self.prefix}_functions[] = {{{', '.join(functions)}}};\n"
        return table + self._run(sums, int(live))

    @abstractmethod
    def _run(self, sums: int, live: int) -> str:
        """Return the instance of the kernel's header."""

    @property
    def _members(self) -> dict[str, int] | None:
        return None if self.sizes is None or self.stops else self.parameters.members(self.sizes)

    @property
    def _arguments(self) -> str:
        """Types of the arguments of a micro-kernel."""
        return _FEW_ROWS_ARGUMENTS.format(p=self.prefix) + self.more_arguments

    def _micro_kernel(self, header: str, family: str, name: str, **parameters: int) -> str:
        shared: dict[str, str | int] = {
            "NAME": name, "PREFIX": self.prefix, "ELEMENT": self.element,
            "LANES": self.vector_bytes // ITEM_BYTES[self.element], "CONSTANT": int(self._members is not None),
        }  # fmt: skip
        prototype = f"static __attribute__((noinline)) void {name}({self._arguments});\n"
        named = {f"{family}_{key}": value for key, value in (shared | parameters).items()}
        return prototype + instantiate(header, self._members, **named)

    def _kernel(self, header: str, family: str, **parameters: int) -> str:
        shared: dict[str, str | int] = {
            "PREFIX": self.prefix, "ELEMENT": self.element, "CONSTANT": int(self._members is not None),
        }  # fmt: skip
        return instantiate(
            header, self._members, **{f"{family}_{key}": value for key, value in (shared | parameters).items()}
        )


class InnerText(FewRows):
    """Texts of inner products."""

    parameters = INNER

    def inner_products(self, name: str, columns: int, prefetches: bool) -> str:
        """Return a function of ``inner_products.h``."""
        prefetch, parts = PREFETCH_BYTES if prefetches else 0, INNER_BYTES // self.vector_bytes
        span = INNER_BYTES // ITEM_BYTES[self.element]
        return self._micro_kernel(
            "dot/inner_products.h", "INNER", name, PARTS=parts, SPAN=span, COLUMNS=columns, PREFETCH=prefetch
        )

    def _run(self, sums: int, live: int) -> str:
        return self._kernel("dot/dot_few_rows.h", "FEW", SUMS=sums, LIVE=live)


class RowSumsText(FewRows):
    """Texts of sums of weighted rows."""

    parameters = ROW_SUMS
    more_arguments = ", int64_t, int64_t, int64_t"

    def one_row(self, name: str, locality: int) -> str:
        """Return a function of ``row_combination.h``."""
        return self._micro_kernel("dot/row_combination.h", "COMBINE", name, LOCALITY=locality)

    def several_rows(self, name: str) -> str:
        """Return the function of ``row_combinations.h``."""
        return self._micro_kernel("dot/row_combinations.h", "COMBINATIONS", name, ROWS=MAX_COMBINATIONS)

    def _run(self, sums: int, live: int) -> str:
        return self._kernel("dot/dot_row_sums.h", "SUMS", AFTER=int(sums > 0), LIVE=live)
