"""The processor: one routine for each opcode that it has, on NumPy arrays."""

from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.service import Executable
from cyxla_toy import kernels

Array = np.ndarray[Any, Any]
ROUTINES = {kernels.MAX_POOL_GRAD: kernels.run_max_pool_grad}  # for custom calls
COMPARE = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
ELEMENTWISE = {
    "abs": np.abs, "negate": np.negative, "exponential": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt,
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "power": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert, "select": np.where,
}  # fmt: skip
JOINS = ("add", "multiply", "maximum", "minimum", "and", "or")  # what a reduction may join with


def divide(ins: Instruction, x: Array, y: Array) -> Array:
    """Integers are cut towards zero; divided by zero they are -1."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    safe = np.where(y == 0, 1, y)
    cut = np.sign(x) * np.sign(safe) * (np.abs(x) // np.abs(safe))
    return np.where(y == 0, np.array(-1).astype(x.dtype), cut.astype(x.dtype))


def broadcast(ins: Instruction, x: Array) -> Array:
    """Repeated along the dimensions that are not named."""
    places = ins.attrs["dimensions"]
    sizes = [ins.shape.dims[d] if d in places else 1 for d in range(ins.shape.rank)]
    return np.broadcast_to(np.transpose(x, np.argsort(places)).reshape(sizes), ins.shape.dims)


def pad(ins: Instruction, x: Array, value: Array) -> Array:
    """Pad around and between elements; negative padding removes elements."""
    spread = [max(n - 1, 0) * (p.interior + 1) + min(n, 1) for n, p in zip(x.shape, ins.attrs["padding"], strict=True)]
    sizes = [n + max(p.low, 0) + max(p.high, 0) for n, p in zip(spread, ins.attrs["padding"], strict=True)]
    whole = np.full(sizes, value, x.dtype)
    at = [
        slice(max(p.low, 0), max(p.low, 0) + n, p.interior + 1)
        for n, p in zip(spread, ins.attrs["padding"], strict=True)
    ]
    whole[tuple(at)] = x
    cut = [slice(-min(p.low, 0), n + min(p.high, 0)) for n, p in zip(sizes, ins.attrs["padding"], strict=True)]
    return whole[tuple(cut)]


def reduce(ins: Instruction, x: Array, init: Array) -> Array:
    """Joined by one opcode."""
    join = ELEMENTWISE[_join(ins)]
    found = join.reduce(x, axis=tuple(ins.attrs["dimensions"]), initial=init.item(), dtype=x.dtype)
    return np.asarray(found)


def _join(ins: Instruction) -> str:
    opcode = ins.called[0].root.opcode
    if len(ins.operands) != 2 or opcode not in JOINS:
        raise UnimplementedError(f"the toy reduces one array by {', '.join(JOINS)}; not by {opcode}")
    return opcode


def dot(ins: Instruction, x: Array, y: Array) -> Array:
    """A product over the contracted dimensions, for each place of the batch."""
    a = ins.attrs
    left, right, names = [""] * x.ndim, [""] * y.ndim, iter("abcdefghijklmnopqrstuvwxyz")
    batch = [next(names) for _ in a["lhs_batch_dims"]]
    for i, j, name in zip(a["lhs_batch_dims"], a["rhs_batch_dims"], batch, strict=True):
        left[i] = right[j] = name
    for i, j in zip(a["lhs_contracting_dims"], a["rhs_contracting_dims"], strict=True):
        left[i] = right[j] = next(names)
    free = [[next(names) if not n else "" for n in side] for side in (left, right)]
    left, right = (
        [n or f for n, f in zip(side, own, strict=True)] for side, own in zip((left, right), free, strict=True)
    )
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(batch + free[0] + free[1])}", x, y)


def dynamic_slice(ins: Instruction, x: Array, *starts: Array) -> Array:
    """A part that begins anywhere, moved inside where it would reach out."""
    return x[_part(x.shape, ins.attrs["dynamic_slice_sizes"], starts)]


def dynamic_update_slice(ins: Instruction, x: Array, part: Array, *starts: Array) -> Array:
    """The same part replaced."""
    made = x.copy()
    made[_part(x.shape, part.shape, starts)] = part
    return made


def _part(whole: tuple[int, ...], sizes: tuple[int, ...], starts: tuple[Array, ...]) -> tuple[slice, ...]:
    first = [min(max(int(s), 0), n - k) for n, k, s in zip(whole, sizes, starts, strict=True)]
    return tuple(slice(i, i + k) for i, k in zip(first, sizes, strict=True))


def while_(ins: Instruction, state: Any) -> Any:
    """Until the condition fails."""
    body, condition = ins.called
    while run(condition, [state]):
        state = run(body, [state])
    return state


def iota(ins: Instruction) -> Array:
    """Each element's place along a dimension."""
    sizes = [1] * ins.shape.rank
    sizes[ins.attrs["iota_dimension"]] = -1
    counted = np.arange(ins.shape.dims[ins.attrs["iota_dimension"]], dtype=ins.shape.dtype.numpy_dtype)
    return np.broadcast_to(counted.reshape(sizes), ins.shape.dims)


STRUCTURED = {
    "constant": lambda ins: ins.attrs["literal"].array,
    "tuple": lambda ins, *parts: parts,
    "get-tuple-element": lambda ins, parts: parts[ins.attrs["index"]],
    "divide": divide,
    "compare": lambda ins, x, y: COMPARE[ins.attrs["direction"]](x, y),
    "convert": lambda ins, x: x.astype(ins.shape.dtype.numpy_dtype),
    "broadcast": broadcast,
    "reshape": lambda ins, x: x.reshape(ins.shape.dims),
    "transpose": lambda ins, x: x.transpose(ins.attrs["dimensions"]),
    "slice": lambda ins, x: x[tuple(slice(d.start, d.limit, d.stride) for d in ins.attrs["slice"])],
    "concatenate": lambda ins, *xs: np.concatenate(xs, ins.attrs["dimensions"][0]),
    "pad": pad,
    "reduce": reduce,
    "dot": dot,
    "iota": iota,
    "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice,
    "while": while_,
    "conditional": lambda ins, p, *args: run(ins.called[_branch(p, len(args))], [args[_branch(p, len(args))]]),
    "custom-call": lambda ins, *xs: ROUTINES[ins.attrs["custom_call_target"]](ins.extras["backend_config"], *xs),
}
OPCODES = frozenset({"parameter", *ELEMENTWISE, *STRUCTURED})


def _branch(choice: Array, count: int) -> int:
    if choice.dtype == bool:
        return 0 if choice else 1
    return int(choice) if 0 <= int(choice) < count else count - 1


def run(computation: Computation, args: list[Any]) -> Any:
    """The value of a computation."""
    values: dict[Instruction, Any] = {}
    for ins in computation.post_order():
        operands = [values[o] for o in ins.operands]
        if ins.opcode == "parameter":
            values[ins] = args[ins.attrs["parameter_number"]]
        elif ins.opcode in ELEMENTWISE:
            values[ins] = np.asarray(ELEMENTWISE[ins.opcode](*operands))
        else:
            values[ins] = STRUCTURED[ins.opcode](ins, *operands)
    return values[computation.root]


class ToyExecutable(Executable):
    """A program for the processor."""

    platform = "toy"

    def __init__(self, module: HloModule) -> None:
        for ins in (i for c in module.post_order() for i in c.instructions):
            if ins.opcode == "reduce":
                _join(ins)
            if ins.opcode == "custom-call" and ins.attrs["custom_call_target"] not in ROUTINES:
                raise UnimplementedError(f"the toy has no routine {ins.attrs['custom_call_target']!r}")
        self.module = module
        self.inputs = tuple(p.shape.logical for p in module.parameters)
        self.outputs = module.entry.root.shape.logical

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run on arguments of the declared types and sizes."""
        if out is not None:
            raise UnimplementedError("out= on platform toy")
        given = [np.asarray(a) for a in args]
        for k, (a, shape) in enumerate(zip(given, self.inputs, strict=True)):
            if (a.shape, a.dtype) != (shape.dims, shape.dtype.numpy_dtype):
                raise InvalidArgumentError(f"argument {k} is {a.dtype}{list(a.shape)}; the program takes {shape}")
        with np.errstate(all="ignore"):
            return run(self.module.entry, given)

    def hlo(self, stage: str = "optimized") -> str:
        """The program as it runs."""
        return self.module.to_text()

    def explain(self) -> str:
        """Describe the executable."""
        return f"{self.module.instruction_count} routines called one after the other"
