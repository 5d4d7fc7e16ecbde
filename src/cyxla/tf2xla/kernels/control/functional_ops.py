"""Function calls, conditionals and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.graph.function_gradients import symbolic_gradient
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult, ResourceUpdate
from cyxla.tf2xla.branch_results import common_parts, common_result
from cyxla.tf2xla.const_analysis import loop_invariants
from cyxla.tf2xla.functions import (
    apply_updates,
    arguments_of,
    call_function,
    dynamic_dimensions,
    expression_of,
    gradient_of,
    joined,
    parts_of,
    tuple_elements,
)
from cyxla.tf2xla.lib.dynamic_sizes import set_dynamic_size
from cyxla.tf2xla.lib.size_checks import first_failures, no_failures
from cyxla.tf2xla.lib.tensor_list import XlaTensorList
from cyxla.tf2xla.lib.typed_values import full
from cyxla.tf2xla.xla_compiler import CompileOptions, XlaCompiler, fake_params_of
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.tf2xla.xla_resource import ResourceKind, XlaResource
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla

_OPTIONS = CompileOptions(resolve_constants=False, return_all_resources=True)


@xla_kernel(("PartitionedCall", "StatefulPartitionedCall", "RemoteCall"), resource=True, variant=True, string=True)
def _call(ctx: XlaOpKernelContext) -> Any:
    """Emit a call of the function's computation."""
    inputs = [ctx.input_expression(i) for i in range(ctx.num_inputs)]
    if ctx.kernel.type_string == "RemoteCall":
        inputs = inputs[1:]
    for i, value in enumerate(call_function(ctx.xla, ctx.attr("f"), inputs)):
        ctx.set_output_expression(i, value)


@xla_kernel("SymbolicGradient")
def _symbolic_gradient(ctx: XlaOpKernelContext) -> Any:
    """Emit a call of the gradient of the function."""
    function = symbolic_gradient(ctx.attr("f"), ctx.xla.compiler.analysis.library)
    inputs = [ctx.input_expression(i) for i in range(ctx.num_inputs)]
    for i, value in enumerate(call_function(ctx.xla, function, inputs)):
        ctx.set_output_expression(i, value)


@xla_kernel("FakeParam")
def _fake_param(ctx: XlaOpKernelContext) -> Any:
    """Emit zeros, which are never read."""
    shape = ctx.xla.fake_param_shapes.get(ctx.kernel.name, ctx.attr("shape"))
    sizes = shape.as_list() if shape.is_fully_defined else [0 if d is None else d for d in shape.dims or ()]
    return full(ctx.builder, 0, ctx.attr("dtype"), sizes)


# ---------------------------------------------------------------------------------------------------- conditionals


@xla_kernel(("If", "StatelessIf", "_If", "XlaIf"), resource=True, variant=True)
def _choose_branch(ctx: XlaOpKernelContext) -> Any:
    """Emit a conditional of two computations, or inline one branch if the condition is constant."""
    then_branch, else_branch = ctx.attr("then_branch"), ctx.attr("else_branch")
    predicate = ctx.xla.constant_value(ctx.input_expression(0))
    if predicate is not None:
        selected = bool(predicate[()]) if not predicate.ndim else predicate.size > 0
        return _call_branch(ctx, then_branch if selected else else_branch)
    condition = ctx.input(0)
    if condition.shape.dims:
        return _call_branch(ctx, then_branch if all(condition.shape.dims) else else_branch)
    if condition.shape.dtype is not ElementType.PRED:
        condition = xla.ne(condition, xla.constant(ctx.builder, 0, condition.shape.dtype))
    return _branches(ctx, condition, [then_branch, else_branch])


@xla_kernel(("Case", "StatelessCase"), resource=True, variant=True)
def _case(ctx: XlaOpKernelContext) -> Any:
    """Emit a conditional of several computations; an index out of range selects the last one."""
    branches = ctx.attr("branches")
    branch_index = ctx.xla.constant_value(ctx.input_expression(0))
    if branch_index is not None:
        index = int(branch_index)
        return _call_branch(ctx, branches[index if 0 <= index < len(branches) else -1])
    return _branches(ctx, ctx.input(0), list(branches))


def _call_branch(ctx: XlaOpKernelContext, branch: NameAttrList) -> None:
    inputs = [ctx.input_expression(i) for i in range(1, ctx.num_inputs)]
    for i, value in enumerate(call_function(ctx.xla, branch, inputs)):
        ctx.set_output_expression(i, value)


def _branches(ctx: XlaOpKernelContext, selector: XlaOp, branches: Sequence[NameAttrList]) -> None:
    inputs = [ctx.input_expression(i) for i in range(1, ctx.num_inputs)]
    compiler = ctx.xla.compiler
    constants = {i for branch in branches for i in compiler.analysis.function_constants(branch)}
    args = arguments_of(ctx.xla, inputs, constants, keep=False)
    results = [compiler.compile_function(branch, args, _OPTIONS) for branch in branches]
    if _initialize_resources(ctx, inputs, results):
        args = arguments_of(ctx.xla, inputs, constants, keep=False)
        results = [compiler.compile_function(branch, args, _OPTIONS) for branch in branches]
    results = _with_fake_param_shapes(compiler, branches, args, results)
    common = common_result([branch.name for branch in branches], results)
    carried = [i for i, arg in enumerate(args) if arg.kind is not ArgumentKind.CONSTANT]
    operand = xla.tuple_(ctx.builder, [part for i in carried for part in parts_of(ctx.xla, inputs[i])])
    bodies = [_with_tuple_operand(results, k, operand.shape, common) for k in range(len(results))]
    parts = tuple_elements(xla.conditional(selector, bodies, [operand] * len(bodies)))
    apply_updates(common, inputs, parts)
    if common.size_checks:
        ctx.xla.size_checks.add(common.size_checks, parts[-1])
    for i, output in enumerate(common.outputs):
        ctx.set_output_expression(i, expression_of(output, inputs, parts))


def _initialize_resources(
    ctx: XlaOpKernelContext, inputs: Sequence[XlaExpression], results: Sequence[CompilationResult]
) -> bool:
    """Create buffers for stacks and tensor arrays that only some branches initialise; return True if there are any."""
    has_resources = False
    for result in results:
        shapes = result.computation.program_shape.result.elements
        for update in result.resource_updates:
            x = inputs[update.input_index]
            if x.value.kind is not ResourceKind.VARIABLE and not _has_known_shape(x, update.gradients):
                _initialize(ctx, x.value, update, tuple(shapes[update.tuple_indices[0]].dims))
                has_resources = True
    return has_resources


def _with_fake_param_shapes(
    compiler: XlaCompiler,
    branches: Sequence[NameAttrList],
    args: Sequence[Argument],
    results: Sequence[CompilationResult],
) -> list[CompilationResult]:
    """Compile branches again whose placeholder results have another shape than those of the other branches."""
    fakes = [fake_params_of(compiler.body_of(branch).graph) for branch in branches]
    result = list(results)
    for b, branch in enumerate(branches):
        shapes = []
        for k in fakes[b]:
            real = next((r.outputs[k].shape for r, f in zip(results, fakes, strict=True) if k not in f), None)
            if real is not None and real != results[b].outputs[k].shape:
                shapes.append((k, real))
        if shapes:
            result[b] = compiler.compile_function(branch, args, replace(_OPTIONS, fake_param_shapes=tuple(shapes)))
    return result


def _with_tuple_operand(
    results: Sequence[CompilationResult], branch: int, shape: Shape, common: CompilationResult
) -> XlaComputation:
    """Wrap the computation of a branch so that it takes its operands as one tuple, and returns the common results."""
    computation = results[branch].computation
    builder = XlaBuilder(f"{computation.name}_branch")
    state = xla.parameter(builder, 0, shape)
    call = xla.call(builder, computation, tuple_elements(state) if shape.elements else [])
    if not common.size_checks and not any(output.dynamic for output in common.outputs):
        return builder.build(call)  # which has that form
    return builder.build(xla.tuple_(builder, common_parts(tuple_elements(call), results, branch, common)))


# ----------------------------------------------------------------------------------------------------------- loops


@xla_kernel(("While", "StatelessWhile", "_While", "XlaWhile"), resource=True, variant=True)
def _run_loop(ctx: XlaOpKernelContext) -> Any:
    """Emit a while loop whose state is a tuple of all values that the body may change."""
    inputs = [ctx.input_expression(i) for i in range(ctx.num_inputs)]
    compiler, body_name, cond_name = ctx.xla.compiler, ctx.attr("body"), ctx.attr("cond")

    constants = compiler.analysis.function_constants(body_name) | compiler.analysis.function_constants(cond_name)
    invariant = set(loop_invariants(compiler.body_of(body_name)))
    constants = constants & invariant
    args, body, inputs = _with_known_shapes(ctx, inputs, constants, body_name)
    cond = compiler.compile_function(cond_name, args, _OPTIONS)
    carried = [i for i, arg in enumerate(args) if arg.kind is not ArgumentKind.CONSTANT]
    _refuse_checks(cond_name, cond)
    checks = [no_failures(ctx.builder, body.size_checks)] if body.size_checks else []
    init = xla.tuple_(ctx.builder, [*(part for i in carried for part in parts_of(ctx.xla, inputs[i])), *checks])
    ranges = _state_ranges(ctx, inputs, carried)
    loop = xla.while_(_condition(cond, init.shape, len(checks)), _loop_body(body, init.shape, carried, ranges), init)
    final = tuple_elements(loop)
    if checks:
        ctx.xla.size_checks.add(body.size_checks, final[-1])
    for i, x in enumerate(inputs):
        _set_output(ctx, i, x, [final[k] for k in ranges[i]] if i in ranges else [])


def _with_known_shapes(
    ctx: XlaOpKernelContext, inputs: list[XlaExpression], constants: set[int], body: NameAttrList
) -> tuple[list[Argument], CompilationResult, list[XlaExpression]]:
    """Return arguments and body once all lists and resources of the state have a shape, which the body determines."""
    args = arguments_of(ctx.xla, inputs, constants, keep=False)
    result = ctx.xla.compiler.compile_function(body, args, _OPTIONS)
    gradients_of_input = {update.input_index: update.gradients for update in result.resource_updates}
    ready = [_has_known_shape(x, gradients_of_input.get(i, ())) for i, x in enumerate(inputs)]
    if not all(ready):
        inputs = [
            x if done else _with_shape(ctx, i, x, result) for i, (x, done) in enumerate(zip(inputs, ready, strict=True))
        ]
        args = arguments_of(ctx.xla, inputs, constants, keep=False)
        result = ctx.xla.compiler.compile_function(body, args, _OPTIONS)
    while (dynamic := _with_dynamic_sizes(ctx, inputs, args, result)) != inputs:
        inputs, args = dynamic, arguments_of(ctx.xla, dynamic, constants, keep=False)
        result = ctx.xla.compiler.compile_function(body, args, _OPTIONS)
    _check_state(inputs, args, result)
    return args, result, inputs


def _with_dynamic_sizes(
    ctx: XlaOpKernelContext, inputs: list[XlaExpression], args: Sequence[Argument], result: CompilationResult
) -> list[XlaExpression]:
    """Return the state with dynamic sizes where it leaves the body with them; those that it enters with are known."""
    made = list(inputs)
    for i, (x, arg, output) in enumerate(zip(inputs, args, result.outputs, strict=True)):
        added = set(output.dynamic) - set(arg.dynamic)
        if arg.kind is ArgumentKind.PARAMETER and output.shape == x.shape and added:
            value = x.as_xla_op(ctx.builder)
            for d in sorted(added):
                value = set_dynamic_size(value, xla.constant(ctx.builder, np.int32(x.shape[d])), d)
            made[i] = XlaExpression.of(value, x.dtype)
    return made


def _has_known_shape(x: XlaExpression, gradients: Sequence[str]) -> bool:
    """Return whether a value enters the loop with the shape it leaves with, and with all its gradients."""
    if x.kind is ExpressionKind.TENSOR_LIST:
        return x.value.buffer is not None
    return x.kind is not ExpressionKind.RESOURCE or (
        x.value.is_initialized and set(gradients) <= set(x.value.gradients)
    )


def _with_shape(ctx: XlaOpKernelContext, i: int, x: XlaExpression, result: CompilationResult) -> XlaExpression:
    """Return zeros of the shape that the body produces."""
    shapes = result.computation.program_shape.result.elements
    if x.kind is ExpressionKind.TENSOR_LIST:
        output = result.outputs[i]
        assert output.tensor_list is not None  # lists stay lists
        zeros = XlaTensorList.zeros(ctx.builder, output.tensor_list, shapes[output.tuple_indices[0]].dims)
        return XlaExpression.tensor_list(replace(zeros, pushed=x.value.pushed))
    for update in result.resource_updates:
        if update.input_index == i:
            _initialize(ctx, x.value, update, tuple(shapes[update.tuple_indices[0]].dims))
    return x


def _initialize(ctx: XlaOpKernelContext, resource: XlaResource, update: ResourceUpdate, sizes: tuple[int, ...]) -> None:
    """Set a resource and its gradients to zeros where they have no value."""
    resource.dtype, resource.shape = update.dtype, update.shape
    zeros = full(ctx.builder, 0, update.dtype, sizes)
    if resource.value is None:
        resource.value = zeros
    if resource.kind is ResourceKind.STACK and resource.pushed is None:
        resource.pushed = xla.constant(ctx.builder, np.int32(0))
    for source in update.gradients:
        gradient = gradient_of(resource, source)
        gradient.value = zeros if gradient.value is None else gradient.value


def _refuse_checks(name: NameAttrList, cond: CompilationResult) -> None:
    """Raise if the condition of a loop compares sizes at run time, which it could not report."""
    for check in cond.size_checks[:1]:
        raise UnimplementedError(
            f"{check.op} {check.node!r} in the condition {name.name!r} compares sizes known only at run time",
            hint="move this node to the body of the loop",
        )


def _check_state(inputs: Sequence[XlaExpression], args: Sequence[Argument], result: CompilationResult) -> None:
    for i, (x, arg, output) in enumerate(zip(inputs, args, result.outputs, strict=True)):
        if output.dynamic != arg.dynamic:
            raise UnimplementedError(
                f"loop variable {i} enters as {x.dtype}{list(x.shape)}, and leaves with other sizes at run time",
                hint="keep an array of fixed size in the loop, or leave the loop out of what is compiled",
            )
        if arg.kind is ArgumentKind.PARAMETER and output.shape != x.shape:
            raise ShapeError(
                f"loop variable {i} enters as {x.dtype}{list(x.shape)}, and leaves as {list(output.shape or ())}",
                hint="a compiled loop keeps the shapes of its variables",
            )


def _state_ranges(ctx: XlaOpKernelContext, inputs: Sequence[XlaExpression], carried: Sequence[int]) -> dict[int, range]:
    """Return the range of state elements of each input."""
    ranges, start = {}, 0
    for i in carried:
        count = len(parts_of(ctx.xla, inputs[i]))
        ranges[i] = range(start, start + count)
        start += count
    return ranges


def _condition(cond: CompilationResult, shape: Shape, checks: int) -> XlaComputation:
    """Build the condition: a computation of the state tuple, whose last `checks` elements it does not read."""
    builder = XlaBuilder(f"{cond.computation.name}_condition")
    state = xla.parameter(builder, 0, shape)
    values = tuple_elements(state)
    result = xla.call(builder, cond.computation, values[: len(values) - checks])
    predicate = xla.get_tuple_element(result, cond.outputs[0].tuple_indices[0])
    if predicate.shape.dims:
        raise ShapeError(f"the condition of a loop must be a scalar; it has the shape {list(predicate.shape.dims)}")
    if predicate.shape.dtype is not ElementType.PRED:
        predicate = xla.ne(predicate, xla.constant(builder, 0, predicate.shape.dtype))
    return builder.build(predicate)


def _loop_body(
    body: CompilationResult, shape: Shape, carried: Sequence[int], ranges: dict[int, range]
) -> XlaComputation:
    """Build the loop body: a computation from the state tuple to the next one."""
    builder = XlaBuilder(f"{body.computation.name}_turn")
    state = tuple_elements(xla.parameter(builder, 0, shape))
    checked = state.pop() if body.size_checks else None
    parts = tuple_elements(xla.call(builder, body.computation, state))
    updates = {u.input_index: u.tuple_indices for u in body.resource_updates}
    after: list[XlaOp] = []
    for i in carried:
        output = body.outputs[i]
        if output.input_index >= 0 and output.input_index != i:
            raise InvalidArgumentError(f"loop variable {i} is a resource that the body exchanges for another")
        result = updates.get(i, ()) if output.input_index >= 0 else output.tuple_indices
        after += [parts[k] for k in result] if result else [state[k] for k in ranges[i]]
    if checked is not None:
        after.append(first_failures(checked, parts[-1]))
    return builder.build(xla.tuple_(builder, after))


def _set_output(ctx: XlaOpKernelContext, i: int, x: XlaExpression, parts: list[XlaOp]) -> None:
    if x.kind is ExpressionKind.RESOURCE:
        if parts:
            x.value.set_parts(parts)
        ctx.set_output_expression(i, x)
    elif x.kind is ExpressionKind.TENSOR_LIST:
        ctx.set_tensor_list_output(i, x.value.with_parts(parts))
    elif parts:
        ctx.set_output_expression(i, XlaExpression.of(joined(parts, dynamic_dimensions(x)), x.dtype))
    else:
        ctx.set_output_expression(i, x)


@xla_kernel("DeviceIndex")
def _device_index(ctx: XlaOpKernelContext) -> Any:
    """Output the number of names: compiled code runs on none of these devices."""
    ctx.set_constant_output(0, len(ctx.attr("device_names")))
