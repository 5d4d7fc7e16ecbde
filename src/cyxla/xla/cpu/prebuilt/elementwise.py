"""Prebuilt element-wise opcodes: a kernel for each opcode and types, with the expression of generated loops.

Floating-point contraction is off on both sides, so that a chain of these has the same bits as the fused loop. Elements
are processed in blocks of constant length. Operands may be one element, a row for all rows, or an element for each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cyxla.types import ElementType as E
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.prebuilt.forms import BINARY, BLOCK, DIRECTIONS, PARTS, TYPES, UNARY, Form, result_of
from cyxla.xla.cpu.prebuilt.library import KERNEL


def forms() -> dict[Form, str]:
    """Return all forms with the names of their functions."""
    return {form: form.name for form in _candidates() if scalar.is_supported(*form[:3], form.attrs)}


def _candidates() -> Iterator[Form]:
    for t in TYPES:
        for opcode in (*UNARY, *(("is-finite",) if t.is_float else ())):
            if not (t.is_unsigned and opcode in ("abs", "sign")):
                yield Form(opcode, result_of(opcode, t), (t,))
        for opcode in BINARY:
            if opcode != "complex" or t in PARTS:
                yield Form(opcode, result_of(opcode, t), (t, t))
        for direction in DIRECTIONS if not t.is_complex else DIRECTIONS[:2]:
            yield Form("compare", E.PRED, (t, t), direction)
        yield Form("clamp", t, (t, t, t))
        yield Form("select", t, (E.PRED, t, t))
        for to in TYPES:
            if to is not t:
                yield Form("convert", to, (t,))


FUNCTIONS = dict.fromkeys(forms().values(), KERNEL)

_ONE = """\
static void {name}(const char *const *in, char *out, int64_t blocks, const int64_t *steps) {{
  for (int64_t b = 0; b < blocks; ++b) {{
{pointers}
{loops}
  }}
}}
cyx_status CYX_PREBUILT({name})(void *const *bufs, int64_t begin, int64_t end) {{
  static const int sizes[] = {{{sizes}}};
  return map_run(bufs, begin, end, {operands}, sizes, {name});
}}
"""
_LOOP = """\
  for (int k = 0; k < {block}; ++k) {{
{loads}    r[k] = {value};{more}
  }}
"""

#: Forms of extremes with one comparison, by the operands that are a bound: a number, the same for all elements, other
#: than NaN and the zero that `scalar` excludes.
_BOUNDED = {
    "maximum": (({1: "at_least"}, "cyx_at_least_{t}(x0, x1)"), ({0: "at_least"}, "cyx_at_least_{t}(x1, x0)")),
    "minimum": (({1: "at_most"}, "cyx_at_most_{t}(x0, x1)"), ({0: "at_most"}, "cyx_at_most_{t}(x1, x0)")),
    "clamp": (({0: "at_least", 2: "at_most"}, "cyx_at_most_{t}(cyx_at_least_{t}(x1, x0), x2)"),),
}
_EXCLUDED_BITS = {"at_least": "(uint64_t)1 << {sign}", "at_most": "0"}  # of -0.0, and of 0.0


#: Comparisons by vectors of words.
_WORDS = (E.F64, E.S64, E.U64)
_OPERATORS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def text(_: Level) -> str:
    """Return the C of the functions."""
    used = dict.fromkeys(t for form in forms() for t in (form.result, *form.operands))
    return "".join(
        [
            *(scalar.memory_typedef(f"map_{t}", t) + "\n" for t in used),
            instantiate("loops/map_blocks.h", MAP_PREFIX="map", MAP_BLOCK=BLOCK),
            *(_word_comparison(t, direction) for t in _WORDS for direction in _OPERATORS),
            *(_function(*item) for item in forms().items()),
        ]
    )


def _word_comparison(t: E, direction: str) -> str:
    parameters: dict[str, str | int] = {
        "WORDS_NAME": f"words_{direction}_{t}",
        "WORDS_COUNT": BLOCK,
        "WORDS_TYPE": f"map_{t}",
    }
    return instantiate("loops/compare_words.h", **parameters, WORDS_OPERATOR=_OPERATORS[direction])


def _function(form: Form, name: str) -> str:
    pointers = [
        f"  const map_{t} *p{k} = (const void *)(in[{k}] + b * steps[{k}]);" for k, t in enumerate(form.operands)
    ]
    pointers.append(f"  map_{form.result} *r = (void *)(out + b * {BLOCK * _size(form.result)});")
    sizes = [*(_size(t) for t in form.operands), *[0] * (3 - len(form.operands)), _size(form.result)]
    return _ONE.format(
        name=name,
        pointers="\n".join(pointers),
        loops=_loops(form),
        sizes=", ".join(map(str, sizes)),
        operands=len(form.operands),
    )


def _size(dtype: E) -> int:
    return dtype.bits // 8


def _loops(form: Form) -> str:
    if form.opcode == "compare" and form.operands[0] in _WORDS:
        return f"  words_{form.direction}_{form.operands[0]}(r, p0, p1);"
    values = [f"x{k}" for k in range(len(form.operands))]
    loads = "".join(
        f"    const {scalar.local_type(t)} x{k} = {scalar.load(t, f'p{k}[k]')};\n" for k, t in enumerate(form.operands)
    )
    value = scalar.expression(form.opcode, form.result, form.operands, form.attrs, values)
    twin = scalar.slow_path(form.opcode, form.operands[0])
    if twin is None:
        return _bounded_loops(form) + _loop(form, loads, scalar.store(form.result, value)).rstrip()
    return _with_twin(form, value, values, twin, loads)


def _loop(form: Form, loads: str, value: str, more: str = "") -> str:
    """Return the loop of a function over the elements of a block."""
    before = "".join(f"  {line}\n" for line in independence(BLOCK, (form.result, *form.operands)))
    return before + _LOOP.format(block=BLOCK, loads=loads, value=value, more=more)


def _with_twin(form: Form, value: str, values: Sequence[str], twin: tuple[str, str], loads: str) -> str:
    """Return the fast loop of a function, and the slow loop for blocks with arguments that need another form."""
    predicate, slow = (f"{function}({', '.join(values)})" for function in twin)
    fast = slow.replace("_slow(", "(", 1)
    rare = f"\n    rare |= (uint32_t)({predicate});"
    exact = scalar.store(form.result, value.replace(fast, f"({predicate} ? {slow} : {fast})"))
    return (
        "  uint32_t rare = 0;\n"
        + _loop(form, loads, scalar.store(form.result, value), rare)
        + "  if (!rare) continue;\n"
        + _loop(form, loads, exact).rstrip()
    )


def _bounded_loops(form: Form) -> str:
    """Return the loops of an extreme of floats for blocks whose bounds are numbers."""
    if form.result not in (E.F32, E.F64):
        return ""
    return "".join(_bounded_loop(form, bounds, value) for bounds, value in _BOUNDED.get(form.opcode, ()))


def _bounded_loop(form: Form, bounds: Mapping[int, str], value: str) -> str:
    t = form.result
    tests = [
        f"!steps[{k}] && p{k}[0] == p{k}[0] && cyx_bits_{t}(p{k}[0]) != {_EXCLUDED_BITS[f].format(sign=t.bits - 1)}"
        for k, f in bounds.items()
    ]
    element = {k: f"p{k}[{0 if k in bounds else 'k'}]" for k in range(len(form.operands))}
    numbers, loads = "", ""
    for k, text in element.items():
        line = f"    const {scalar.local_type(t)} x{k} = {scalar.load(t, text)};\n"
        numbers, loads = (numbers + line, loads) if k in bounds else (numbers, loads + line)
    loop = _loop(form, loads, value.format(t=t))
    return f"  if ({' && '.join(tests)}) {{\n{numbers}{loop}    continue;\n  }}\n"
