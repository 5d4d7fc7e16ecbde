"""Opcodes that call computations or order execution."""

from __future__ import annotations

from cyxla.types import TOKEN, Shape
from cyxla.xla.hlo.attributes import Alias
from cyxla.xla.hlo.opcode import VARIADIC, Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import PRED0, S32_0, same_value, signature, stated

_ALIASING = opt("output_to_operand_aliasing", "aliasing", ())
_VERSIONS = ",".join(
    "API_VERSION_" + v for v in ("UNSPECIFIED", "ORIGINAL", "STATUS_RETURNING", "STATUS_RETURNING_UNIFIED", "TYPED_FFI")
)
# fmt: off
_CUSTOM_CALL = (
    req("custom_call_target", "string"), opt("window", "window"), opt("dim_labels", "dim_labels"),
    opt("feature_group_count", "int", 1), opt("batch_group_count", "int", 1),
    opt("operand_layout_constraints", "shapes"), opt("custom_call_has_side_effect", "bool", False),
    opt("literal", "literal"), _ALIASING,
    opt("padding_type", "enum:PADDING_INVALID,PADDING_VALID,PADDING_SAME"),
    opt("schedule", "enum:SCHEDULE_NONE,SCHEDULE_LATEST,SCHEDULE_EARLIEST", "SCHEDULE_NONE"),
    opt("api_version", f"enum:{_VERSIONS}", "API_VERSION_ORIGINAL"), opt("operand_precision", "precision", ()))
# fmt: on


@opcode("call", VARIADIC, calls=("to_apply",), attrs=(opt("is_composite", "bool", False),))
def call(site: Site) -> Shape:
    """(C1) to_apply takes the operands. Its result is the result."""
    return signature(site, "C1", site.called[0], site.operands, "to_apply")


@opcode("while", 1, calls=("body", "condition"))
def while_(site: Site) -> Shape:
    """The operand.

    (C1) body takes the operand; (C2) and returns the same shape; (C3) condition takes the operand; (C4) and returns a
    pred.
    """
    state, (body, condition) = site.operands[0], site.called
    result = signature(site, "C1", body, [state], "body")
    site.require(same_value(result, state), "C2", f"body {body.name} returns {result}, but the state is {state}")
    answer = signature(site, "C3", condition, [state], "condition")
    site.require(answer is PRED0, "C4", f"condition {condition.name} returns {answer} instead of pred[]")
    return state


@opcode("conditional", (1, None), calls=("branch_computations",), many_calls=True)  # pred form: (true, false)
def conditional(site: Site) -> Shape:
    """The result of the branches.

    (C1) the first operand is a pred or s32 scalar; (C2) one branch for each other operand, at least one, and two for a
    pred; (C3) a branch takes its operand; (C4) all branches return one shape.
    """
    selector, *arguments = site.operands
    site.require(
        selector is PRED0 or selector is S32_0, "C1", f"the selector is {selector}, but must be pred[] or s32[]"
    )
    n, num_branches = len(site.called), 2 if selector is PRED0 else len(arguments)
    fits = n == num_branches == len(arguments) and n > 0
    site.require(fits, "C2", f"{n} branches for {len(arguments)} arguments and a selector {selector}")
    results = [
        signature(site, "C3", c, [x], f"branch {i}")
        for i, (c, x) in enumerate(zip(site.called, arguments, strict=True))
    ]
    for i, r in enumerate(results):
        site.require(same_value(r, results[0]), "C4", f"branch {i} returns {r}, branch 0 {results[0]}")
    return results[0]


@opcode("fusion", VARIADIC, calls=("calls",), attrs=(req("kind", "enum:kLoop,kInput,kOutput,kCustom"), _ALIASING))
def fusion(site: Site) -> Shape:
    """The result of the called computation.

    (C1) the called computation takes the operands; (C2) aliases name parts of the result and of the operands that are
    of one shape.
    """
    result = signature(site, "C1", site.called[0], site.operands, "computation")
    _aliases(site, "C2", result)
    return result


@opcode("custom-call", VARIADIC, calls=("called_computations",), many_calls=True, attrs=_CUSTOM_CALL, many_steps=True)
def custom_call(site: Site) -> Shape:
    """The stated result.

    (C1) the result is stated; (C2) operand_layout_constraints are the operands' shapes; (C3) aliases name parts of the
    result and of the operands that are of one shape; (C4) a known linear algebra routine or compaction has its
    signature.
    """
    result, constraints = stated(site, "C1", array=False), site.attrs["operand_layout_constraints"]
    if constraints is not None:
        fits = len(constraints) == len(site.operands) and all(map(same_value, constraints, site.operands))
        site.require(
            fits, "C2", f"operand_layout_constraints {', '.join(map(str, constraints))} are not the operands' shapes"
        )
    _aliases(site, "C3", result)
    from cyxla.xla.hlo.custom_call_signatures import check_signature  # most programs have none

    check_signature(site)
    return result


def _aliases(site: Site, label: str, result: Shape) -> None:
    for alias in site.attrs["output_to_operand_aliasing"]:
        _alias(site, label, result, Alias(*alias))


def _alias(site: Site, label: str, result: Shape, alias: Alias) -> None:
    site.require(
        0 <= alias.operand < len(site.operands), label, f"alias of operand {alias.operand} of {len(site.operands)}"
    )
    result_shape, operand_shape = (
        _subshape(result, alias.output_index),
        _subshape(site.operands[alias.operand], alias.operand_index),
    )
    fits = result_shape is not None and operand_shape is not None and same_value(result_shape, operand_shape)
    site.require(
        fits,
        label,
        f"alias {alias.output_index} of operand {alias.operand} {alias.operand_index}: {result_shape} and "
        f"{operand_shape}",
    )


def _subshape(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    for i in index:
        if not 0 <= i < len(shape.elements):
            return None
        shape = shape.elements[i]
    return shape


# An asynchronous operation is start, update, done around the computation that it wraps; text prints the short form.
@opcode("async-start", VARIADIC, calls=("calls",), attrs=(opt("async_execution_thread", "string", ""), _ALIASING))
def async_start(site: Site) -> Shape:
    """The operands as a tuple, the result to come, and further elements that the program states.

    (C1) the called computation takes the operands; (C2) a stated result begins with the operands as a tuple and the
    computation's result. Further elements are state.
    """
    result = signature(site, "C1", site.called[0], site.operands, "computation")
    base = Shape.tuple([Shape.tuple(site.operands), result])
    if site.declared is None:
        return base
    head = site.declared.elements[:2]
    fits = len(head) == 2 and all(map(same_value, head, base.elements))
    site.require(
        fits,
        "C2",
        f"the result is stated as {site.declared}, but must begin with {base.elements[0]}, {base.elements[1]}",
    )
    return site.declared


def _in_flight(site: Site) -> Shape:
    operand = site.operands[0]
    fits = len(operand.elements) >= 2 and operand.elements[0].is_tuple
    site.require(fits, "C1", f"{operand} is not the result of an async-start")
    return operand


@opcode("async-update", 1)
def async_update(site: Site) -> Shape:
    """(C1) the result of async-start or async-update, which is also the result."""
    return _in_flight(site)


@opcode("async-done", 1)
def async_done(site: Site) -> Shape:
    """(C1) the result of async-start or async-update. The result is that of the wrapped operation."""
    return _in_flight(site).elements[1]


@opcode("after-all", VARIADIC)
def after_all(site: Site) -> Shape:
    """(C1) the operands are tokens."""
    for i, s in enumerate(site.operands):
        site.require(s is TOKEN, "C1", f"operand {i} is {s}, not a token")
    return TOKEN


@opcode("add-dependency", 2)
def add_dependency(site: Site) -> Shape:
    """(C1) the second operand is a token."""
    site.require(site.operands[1] is TOKEN, "C1", f"operand 1 is {site.operands[1]}, not a token")
    return site.operands[0]


@opcode("domain", 1, attrs=(req("domain", "domain"),))
def domain(site: Site) -> Shape:
    """No constraint: the result is the operand."""
    return site.operands[0]
