"""Optimiser updates: a variable and its slots are updated together from a gradient."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.types import FLOATING
from cyxla.core.framework.variable import Ref, Var
from cyxla.core.kernels.lib.scatter import check_indices
from cyxla.errors import FailedPreconditionError, NotFoundError, ShapeError

Array = np.ndarray[Any, Any]
Slots = tuple[Array, ...]
Update = Callable[..., Slots]


@dataclass(frozen=True)
class Rule:
    """Update rule of an optimiser.

    Parameters
    ----------
    name : str
        Name of the op without its prefix.
    slots : tuple of str
        Names of the inputs that are variables, the trained one first.
    update : callable
        Function ``update(*slots, **others, **attrs) -> slots`` in the wide type; the others are scalars and a gradient.
    attrs : tuple of str
        Names of the attributes passed to `update`.
    """

    name: str
    slots: tuple[str, ...]
    update: Update
    attrs: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------------------ rules


def _gradient_descent(var: Array, *, alpha: Array, delta: Array) -> Slots:
    return (var - alpha * delta,)


def _momentum(var: Array, accum: Array, *, lr: Array, grad: Array, momentum: Array, use_nesterov: bool) -> Slots:
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if use_nesterov else accum * lr
    return var - step, accum


def _keras_momentum(var: Array, accum: Array, *, lr: Array, grad: Array, momentum: Array, use_nesterov: bool) -> Slots:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


def _adagrad(var: Array, accum: Array, *, lr: Array, grad: Array, update_slots: bool) -> Slots:
    """Update by Duchi, Hazan and Singer, JMLR 12, 2011."""
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / np.sqrt(accum), accum


def _adagrad_v2(var: Array, accum: Array, *, lr: Array, epsilon: Array, grad: Array, update_slots: bool) -> Slots:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (np.sqrt(accum) + epsilon), accum


def _adagrad_da(
    var: Array,
    total: Array,
    squares: Array,
    *,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> Slots:
    """Update by dual averaging, in which the variable depends on the sums only."""
    total, squares = total + grad, squares + grad * grad
    step = global_step.astype(var.dtype)
    pull = np.sign(total) * np.maximum(np.abs(total) - l1 * step, 0) if l1 > 0 else total
    return -lr * pull / (l2 * step * lr + np.sqrt(squares)), total, squares


def _proximal(x: Array, rate: Array, l1: Array, l2: Array) -> Array:
    """Apply the proximal operator of the l1 and l2 regularisers."""
    shrunk = np.sign(x) * np.maximum(np.abs(x) - rate * l1, 0) if l1 > 0 else x
    return np.asarray(shrunk / (1 + l2 * rate))


def _proximal_adagrad(var: Array, accum: Array, *, lr: Array, l1: Array, l2: Array, grad: Array) -> Slots:
    accum = accum + grad * grad
    rate = lr / np.sqrt(accum)
    return _proximal(var - grad * rate, rate, l1, l2), accum


def _proximal_gradient_descent(var: Array, *, alpha: Array, l1: Array, l2: Array, delta: Array) -> Slots:
    return (_proximal(var - delta * alpha, alpha, l1, l2),)


def _adadelta(var: Array, accum: Array, updates: Array, *, lr: Array, rho: Array, epsilon: Array, grad: Array) -> Slots:
    """Update by Zeiler, arXiv 1212.5701."""
    accum = accum * rho + grad * grad * (1 - rho)
    step = np.sqrt(updates + epsilon) / np.sqrt(accum + epsilon) * grad
    return var - step * lr, accum, updates * rho + step * step * (1 - rho)


def _moments(m: Array, v: Array, beta1: Array, beta2: Array, grad: Array) -> tuple[Array, Array]:
    return m + (grad - m) * (1 - beta1), v + (grad * grad - v) * (1 - beta2)


def _adam(
    var: Array,
    m: Array,
    v: Array,
    *,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
    use_nesterov: bool,
) -> Slots:
    """Update by Kingma and Ba, ICLR 2015, with the bias correction moved into the rate as in section 2."""
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    m, v = _moments(m, v, beta1, beta2, grad)
    direction = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    return var - direction * rate / (np.sqrt(v) + epsilon), m, v


def _amsgrad(
    var: Array,
    m: Array,
    v: Array,
    vhat: Array,
    *,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> Slots:
    """Update by Reddi, Kale and Kumar, ICLR 2018."""
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    m, v = _moments(m, v, beta1, beta2, grad)
    vhat = np.maximum(vhat, v)
    return var - m * rate / (np.sqrt(vhat) + epsilon), m, v, vhat


def _adamax(
    var: Array,
    m: Array,
    v: Array,
    *,
    beta1_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> Slots:
    """Update by Kingma and Ba, ICLR 2015, section 7.1."""
    m, v = m + (grad - m) * (1 - beta1), np.maximum(beta2 * v, np.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def _add_sign(var: Array, m: Array, *, lr: Array, alpha: Array, sign_decay: Array, beta: Array, grad: Array) -> Slots:
    """Update by Bello et al., "Neural optimizer search with reinforcement learning", ICML 2017."""
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad, m


def _power_sign(
    var: Array, m: Array, *, lr: Array, logbase: Array, sign_decay: Array, beta: Array, grad: Array
) -> Slots:
    """Update by Bello et al., "Neural optimizer search with reinforcement learning", ICML 2017."""
    m = m * beta + grad * (1 - beta)
    return var - lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad, m


def _rmsprop(
    var: Array, ms: Array, mom: Array, *, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> Slots:
    """Update by Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning", 2012."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / np.sqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rmsprop(
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    *,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> Slots:
    """Update by the variance of the gradient: Graves, arXiv 1308.0850, equations 38 to 45."""
    ms, mg = ms + (grad * grad - ms) * (1 - rho), mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / np.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _ftrl(
    var: Array,
    accum: Array,
    linear: Array,
    *,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    lr_power: Array,
    multiply_linear_by_lr: bool,
    l2_shrinkage: Array | float = 0,
) -> Slots:
    """Update by McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013, algorithm 1."""
    unit = lr if multiply_linear_by_lr else var.dtype.type(1)  # unit of the linear term
    new_accum = accum + grad * grad
    power, before = new_accum**-lr_power, accum**-lr_power
    shrunk = grad + 2 * l2_shrinkage * var
    linear = linear + shrunk * unit - (power - before) / lr * unit * var
    bound = l1 * unit
    solved = (bound * np.sign(linear) - linear) / (power / lr * unit + 2 * l2 * unit)
    return np.where(np.abs(linear) > bound, solved, 0), new_accum, linear


_RULES = (
    Rule("GradientDescent", ("var",), _gradient_descent),
    Rule("Momentum", ("var", "accum"), _momentum, ("use_nesterov",)),
    Rule("KerasMomentum", ("var", "accum"), _keras_momentum, ("use_nesterov",)),
    Rule("Adagrad", ("var", "accum"), _adagrad, ("update_slots",)),
    Rule("AdagradV2", ("var", "accum"), _adagrad_v2, ("update_slots",)),
    Rule("AdagradDA", ("var", "gradient_accumulator", "gradient_squared_accumulator"), _adagrad_da),
    Rule("ProximalAdagrad", ("var", "accum"), _proximal_adagrad),
    Rule("ProximalGradientDescent", ("var",), _proximal_gradient_descent),
    Rule("Adadelta", ("var", "accum", "accum_update"), _adadelta),
    Rule("Adam", ("var", "m", "v"), _adam, ("use_nesterov",)),
    Rule("AdamWithAmsgrad", ("var", "m", "v", "vhat"), _amsgrad),
    Rule("AdaMax", ("var", "m", "v"), _adamax),
    Rule("AddSign", ("var", "m"), _add_sign),
    Rule("PowerSign", ("var", "m"), _power_sign),
    Rule("RMSProp", ("var", "ms", "mom"), _rmsprop),
    Rule("CenteredRMSProp", ("var", "mg", "ms", "mom"), _centered_rmsprop),
    Rule("Ftrl", ("var", "accum", "linear"), _ftrl, ("multiply_linear_by_lr",)),
    Rule("FtrlV2", ("var", "accum", "linear"), _ftrl, ("multiply_linear_by_lr",)),
)
_BY_REFERENCE = ("GradientDescent", "Momentum", "Adagrad", "Adam", "RMSProp")
_GRADIENTS = ("grad", "delta")


# ----------------------------------------------------------------------------------------------------------- kernels


def _cells(ctx: OpKernelContext, rule: Rule, by_reference: bool) -> list[Ref]:
    if by_reference:
        return [ctx.mutable_input(i) for i in range(len(rule.slots))]
    return [_variable(ctx, i, name) for i, name in enumerate(rule.slots)]


def _variable(ctx: OpKernelContext, i: int, name: str) -> Ref:
    try:
        return ctx.lookup_resource(i, Var)
    except NotFoundError:
        raise _uninitialised(name) from None


def _uninitialised(name: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"the variable {name!r} has no value yet", hint="run its initialiser first")


def _values(cells: list[Ref], rule: Rule) -> list[Array]:
    values: list[Array] = []
    for name, cell in zip(rule.slots, cells, strict=True):
        value = cell.read()
        if value is None:
            raise _uninitialised(name)
        if values and value.shape != values[0].shape:
            raise ShapeError(f"{rule.slots[0]} {list(values[0].shape)} and {name} {list(value.shape)} differ in shape")
        values.append(value)
    return values


def _other_operands(ctx: OpKernelContext, rule: Rule, shape: tuple[int, ...]) -> dict[str, Array]:
    """Return the gradient, of the variable's shape, and the scalars."""
    names = list(ctx.op_kernel.props.input_ranges)[len(rule.slots) :]
    values = {name: ctx.input(name) for name in names}
    for name, value in values.items():
        expected_shape = shape if name in _GRADIENTS else ()
        if value.shape != expected_shape:
            raise ShapeError(f"{name} must have the shape {list(expected_shape)}; it has {list(value.shape)}")
    return values


def _lock_all(cells: list[Ref]) -> ExitStack:
    """Acquire the locks of all cells, in a global order that avoids deadlocks."""
    stack = ExitStack()
    for cell in sorted(set(cells), key=id):
        stack.enter_context(cell.lock)
    return stack


def _register(rule: Rule, op: str, by_reference: bool) -> None:
    @kernel(op, types={"T": FLOATING})
    def apply(ctx: OpKernelContext) -> None:
        cells = _cells(ctx, rule, by_reference)
        with _lock_all(cells), np.errstate(all="ignore"):
            before = _values(cells, rule)
            dtype = before[0].dtype
            wide = wide_type(dtype)
            operands = {
                name: value if value.dtype != dtype else value.astype(wide, copy=False)
                for name, value in _other_operands(ctx, rule, before[0].shape).items()
            }
            attrs = {name: ctx.attr(name) for name in rule.attrs}
            after = rule.update(*(value.astype(wide, copy=False) for value in before), **operands, **attrs)
            for cell, value in zip(cells, after, strict=True):
                cell.assign(np.asarray(value).astype(dtype, copy=False))
        if by_reference:
            ctx.set_output_ref(0, cells[0])

    apply.__name__ = op


for _rule in _RULES:
    _register(_rule, "ResourceApply" + _rule.name, by_reference=False)
    if _rule.name in _BY_REFERENCE:
        _register(_rule, "Apply" + _rule.name, by_reference=True)


# ------------------------------------------------------------------------------------------------- updates of rows only


def _sparse(rule: Rule) -> None:
    @kernel("ResourceSparseApply" + rule.name, types={"T": FLOATING})
    def apply(ctx: OpKernelContext) -> None:
        """Update row by row, so that duplicate indices accumulate."""
        cells = _cells(ctx, rule, by_reference=False)
        indices, grad = ctx.input("indices"), ctx.input("grad")
        names = [n for n in ctx.op_kernel.props.input_ranges if n not in (*rule.slots, "indices", "grad")]
        scalars = {name: ctx.input(name) for name in names}
        attrs = {name: ctx.attr(name) for name in rule.attrs}
        with _lock_all(cells), np.errstate(all="ignore"):
            values = _values(cells, rule)
            if indices.ndim != 1 or grad.shape != (len(indices), *values[0].shape[1:]):
                raise ShapeError(f"gradients {list(grad.shape)} for rows {list(indices.shape)} of {values[0].shape}")
            check_indices(indices, values[0].shape[0])
            arrays = [cell.writable() for cell in cells]
            for row, step in zip(indices.tolist(), grad, strict=True):
                after = rule.update(*(array[row] for array in arrays), grad=step, **scalars, **attrs)
                for array, value in zip(arrays, after, strict=True):
                    array[row] = value


for _rule in _RULES:
    if _rule.name in ("Adagrad", "Momentum"):
        _sparse(_rule)
