"""Prebuilt reductions, scans, and searches for the first extreme: in vectors, or in the order of native code.

The order of sums and products of floats is that of `reduce.loops`: along rows, lanes that are folded at the end
(``loops.h``), along columns row by row, perhaps in groups; complex numbers are added sequentially. Scans are
sequential, as in `reduce.scans`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType as E
from cyxla.types import Kind
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.prebuilt.forms import LANED, TYPES
from cyxla.xla.cpu.prebuilt.library import KERNEL
from cyxla.xla.cpu.reduce.accumulators import Accumulator, accumulator

_EXTREMES = ("maximum", "minimum")
_LANES = {E.F32: 64, E.F64: 32}  # of sums and products
_ALL = ("add", "multiply", *_EXTREMES, "and", "or", "xor")
_VARIABLES = ("v", "w")
_OTHERS = ("x", "y")


def forms() -> dict[tuple[str, E], str]:
    """Return the name of the function for each combiner and type."""
    pairs = [(c, t) for t in TYPES for c in (("add",) if t.is_complex else _EXTREMES if t.is_float else _ALL)]
    pairs += [(c, t) for t in _LANES for c in LANED]
    return {(c, t): f"reduce_{c}_{t}" for c, t in pairs if scalar.is_supported(c, t, (t, t), {})}


def scan_forms() -> dict[tuple[str, E], str]:
    """Return the name of the function of a scan for each combiner and type."""
    types = [t for t in TYPES if t.bits >= 32 and not t.is_complex]
    pairs = [(c, t) for t in types for c in (*LANED, *_EXTREMES) if len(_accumulator(c, t).variables) == 1]
    return {(c, t): f"scan_{c}_{t}" for c, t in pairs}


def first_forms() -> dict[tuple[str, E], str]:
    """Return the name of the function of the first index of an extreme for each combiner and type."""
    types = [t for t in TYPES if t in _LANES or t.kind in (Kind.SIGNED, Kind.UNSIGNED)]
    return {(c, t): f"first_{c}_{t}" for t in types for c in _EXTREMES}


def _accumulator(combiner: str, t: E) -> Accumulator:
    found = accumulator(combiner, t)
    assert found is not None
    return found


FUNCTIONS = dict.fromkeys((*forms().values(), *scan_forms().values(), *first_forms().values()), KERNEL)


def text(_: Level) -> str:
    """Return the C of the functions, which is the same for every level."""
    types = dict.fromkeys(t for _, t in forms())
    memory = [scalar.memory_typedef(f"reduce_{t}", t) + "\n" for t in types]
    reductions = [_function(c, t, name) for (c, t), name in forms().items()]
    scans = [_scan(_accumulator(c, t), t, name) for (c, t), name in scan_forms().items()]
    firsts = [_first_extreme(c, t, name) for (c, t), name in first_forms().items()]
    return "".join([*memory, *reductions, *scans, *firsts])


def _function(combiner: str, t: E, name: str) -> str:
    exported = f"CYX_PREBUILT({name})"
    if t.is_complex:
        return _one_by_one(combiner, t, exported)
    write = _along_lanes if t.is_float and combiner in LANED else _in_vectors
    return write(combiner, t, name) + _export(name)


def _export(name: str) -> str:
    return f"{KERNEL[0]} CYX_PREBUILT({name})({KERNEL[1]}) {{ return {name}_run(bufs, begin, end); }}\n"


def _along_lanes(combiner: str, t: E, name: str) -> str:
    unit, sign = ("-0.0", "+") if combiner == "add" else ("1", "*")
    parameters: dict[str, str | int] = {
        "REDUCE_PREFIX": name, "REDUCE_REAL": scalar.storage_type(t), "REDUCE_MEMORY": f"reduce_{t}",
        "REDUCE_LANES": _LANES[t], "REDUCE_UNIT": unit, "REDUCE_ADD": f"cyx_lanes_{combiner}_{t}",
        "REDUCE_FOLD": f"cyx_fold_{combiner}_{t}", "REDUCE_COMBINE(x, y)": f"(x) {sign} (y)",
    }  # fmt: skip
    return instantiate("reduce/reduce_lanes.h", **parameters)


def _in_vectors(combiner: str, t: E, name: str) -> str:
    acc = _accumulator(combiner, t)
    merge = acc.merge or (lambda v, w: acc.update(v, w[0]))
    parameters: dict[str, str | int] = {
        "REDUCE_PREFIX": name, "REDUCE_MEMORY": f"reduce_{t}", "REDUCE_LOAD(m)": scalar.load(t, "m"),
        "REDUCE_STORE(x)": scalar.store(t, "x"), **_extreme(combiner, t), **_variables(acc),
        **_macros("UPDATE", "v, w, x", acc.update(list(_VARIABLES), "x")),
        **_macros("MERGE", "v, w, x, y", merge(list(_VARIABLES), list(_OTHERS))),
        "REDUCE_TOTAL(v, w)": acc.total(list(_VARIABLES)), "REDUCE_COMBINE(x, y)": acc.with_init("x", "y"),
    }  # fmt: skip
    return instantiate("reduce/reduce_vectors.h", **parameters)


def _variables(acc: Accumulator) -> dict[str, str | int]:
    """Return the types and units of the two variables, of which the second may have no use."""
    (type0, unit0), (type1, unit1) = acc.variables if len(acc.variables) == 2 else (acc.variables[0], ("int8_t", "0"))
    return {"REDUCE_TYPE0": type0, "REDUCE_UNIT0": unit0, "REDUCE_TYPE1": type1, "REDUCE_UNIT1": unit1}


def _extreme(combiner: str, t: E) -> dict[str, str | int]:
    """Return the parameters of comparisons of floats, with dummies for other types and combiners."""
    is_maximum, real = combiner == "maximum", scalar.storage_type(t) if t in _LANES else "int"
    return {
        "REDUCE_KIND": 1 if t in _LANES and combiner in _EXTREMES else 2 if t.bits < 32 else 0, "REDUCE_REAL": real,
        "REDUCE_BITS": f"int{t.bits}_t", "REDUCE_BEFORE(x, y)": f"((x) {'>' if is_maximum else '<'} (y))",
        "REDUCE_FIRST": f"({real}){'-' if is_maximum else ''}__builtin_inf()",
        "REDUCE_BETTER_ZERO": "0.0" if is_maximum else "-0.0", "REDUCE_BETTER_SIGN(x)": f"({'~' * is_maximum}(x))",
    }  # fmt: skip


def _macros(name: str, parameters: str, values: Sequence[str]) -> dict[str, str | int]:
    second = values[1] if len(values) == 2 else "0"
    return {f"REDUCE_{name}0({parameters})": values[0], f"REDUCE_{name}1({parameters})": second}


def _scan(acc: Accumulator, t: E, name: str) -> str:
    total = acc.total(["v"])
    parameters: dict[str, str | int] = {
        "SCAN_PREFIX": name, "SCAN_MEMORY": f"reduce_{t}", "SCAN_LOAD(m)": scalar.load(t, "m"),
        "SCAN_TYPE": acc.variables[0][0], "SCAN_UNIT": acc.variables[0][1],
        "SCAN_UPDATE(v, x)": acc.update(["v"], "x")[0],
        "SCAN_RESULT(init, v)": scalar.store(t, acc.with_init("init", total)),
    }  # fmt: skip
    return instantiate("reduce/scan.h", **parameters) + _export(name)


def _first_extreme(combiner: str, t: E, name: str) -> str:
    parameters: dict[str, str | int] = {
        "FIRST_PREFIX": name, "FIRST_TYPE": scalar.storage_type(t), "FIRST_MEMORY": f"reduce_{t}",
        "FIRST_MASK": f"int{t.bits}_t", "FIRST_PLACE": f"int{max(t.bits, 32)}_t",
        "FIRST_BEFORE(x, y)": f"((x) {'>' if combiner == 'maximum' else '<'} (y))",
    }  # fmt: skip
    return instantiate("reduce/first_extreme.h", **parameters) + _export(name)


def _one_by_one(combiner: str, t: E, name: str) -> str:
    joined = scalar.expression(combiner, t, (t, t), {}, ("initial", "x"))
    parameters: dict[str, str | int] = {
        "REDUCE_NAME": name, "REDUCE_MEMORY": f"reduce_{t}", "REDUCE_LOCAL": scalar.local_type(t),
        "REDUCE_LOAD(m)": scalar.load(t, "m"), "REDUCE_STORE(x)": scalar.store(t, "x"),
        "REDUCE_COMBINE(x, y)": scalar.expression(combiner, t, (t, t), {}, ("x", "y")),
        "REDUCE_UNIT": f"cyx_{t}_of(-0.0, -0.0)", "REDUCE_RESULT": joined,
    }  # fmt: skip
    return instantiate("reduce/reduce.h", **parameters)
