"""Optimiser updates: a variable and its slots are updated together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyxla.core.framework.types import COMPLEX, FLOATING, DataType
from cyxla.errors import ShapeError
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import is_narrow, scalar, select, sizes_of, widened, zeros_like

Update = Callable[..., tuple[XlaOp, ...]]
_WITH_COMPLEX = frozenset(
    {
        "Adadelta", "Adagrad", "AdagradV2", "Adam", "CenteredRMSProp", "GradientDescent", "KerasMomentum",
        "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
    }
)  # fmt: skip


def _register(name: str, slots: tuple[str, ...], update: Update, *attrs: str) -> None:
    @xla_kernel("ResourceApply" + name, types={"T": FLOATING + COMPLEX if name in _WITH_COMPLEX else FLOATING})
    def apply(ctx: XlaOpKernelContext) -> Any:
        dtype: DataType = ctx.attr("T")
        before = [ctx.read_variable_input(i, dtype) for i in range(len(slots))]
        names = list(ctx.kernel.props.input_ranges)[len(slots) :]
        operands = {n: ctx.input(n) for n in names}
        _check(slots, before, operands)
        wide = {n: widened(x) for n, x in operands.items()}
        after = update(*map(widened, before), **wide, **{n: ctx.attr(n) for n in attrs})
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            ctx.assign_variable(i, dtype, xla.convert(new, old.shape.dtype) if is_narrow(old) else new)


def _check(slots: tuple[str, ...], values: list[XlaOp], operands: dict[str, XlaOp]) -> None:
    shape = sizes_of(values[0])
    for name, value in [*zip(slots, values, strict=True), *operands.items()]:
        expected = shape if name in slots or name in ("grad", "delta") else ()
        if sizes_of(value) != expected:
            raise ShapeError(f"{name} must have the shape {list(expected)}; it has {list(sizes_of(value))}")


def _one(x: XlaOp) -> XlaOp:
    return scalar(x, 1)


def _gradient_descent(var: XlaOp, *, alpha: XlaOp, delta: XlaOp) -> tuple[XlaOp, ...]:
    return (var - alpha * delta,)


def _momentum(
    var: XlaOp, accum: XlaOp, *, lr: XlaOp, grad: XlaOp, momentum: XlaOp, use_nesterov: bool
) -> tuple[XlaOp, ...]:
    accum = accum * momentum + grad
    return var - (grad * lr + accum * momentum * lr if use_nesterov else accum * lr), accum


def _keras_momentum(
    var: XlaOp, accum: XlaOp, *, lr: XlaOp, grad: XlaOp, momentum: XlaOp, use_nesterov: bool
) -> tuple[XlaOp, ...]:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


def _adagrad(var: XlaOp, accum: XlaOp, *, lr: XlaOp, grad: XlaOp, update_slots: bool) -> tuple[XlaOp, ...]:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr * xla.rsqrt(accum), accum


def _adagrad_v2(
    var: XlaOp, accum: XlaOp, *, lr: XlaOp, epsilon: XlaOp, grad: XlaOp, update_slots: bool
) -> tuple[XlaOp, ...]:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (xla.sqrt(accum) + epsilon), accum


def _adagrad_da(
    var: XlaOp,
    total: XlaOp,
    squares: XlaOp,
    *,
    grad: XlaOp,
    lr: XlaOp,
    l1: XlaOp,
    l2: XlaOp,
    global_step: XlaOp,
) -> tuple[XlaOp, ...]:
    total, squares = total + grad, squares + grad * grad
    step = xla.convert(global_step, var.shape.dtype)
    shrunk = xla.sign(total) * xla.maximum(xla.abs_(total) - l1 * step, zeros_like(total))
    pull = select(xla.gt(l1, zeros_like(l1)), shrunk, total)
    return -(lr * pull) / (xla.sqrt(squares) + l2 * step * lr), total, squares


def _proximal(x: XlaOp, rate: XlaOp, l1: XlaOp, l2: XlaOp) -> XlaOp:
    shrunk = xla.sign(x) * xla.maximum(xla.abs_(x) - rate * l1, zeros_like(x))
    return select(xla.gt(l1, zeros_like(l1)), shrunk, x) / (rate * l2 + _one(l2))


def _proximal_adagrad(var: XlaOp, accum: XlaOp, *, lr: XlaOp, l1: XlaOp, l2: XlaOp, grad: XlaOp) -> tuple[XlaOp, ...]:
    accum = accum + grad * grad
    rate = xla.rsqrt(accum) * lr
    return _proximal(var - grad * rate, rate, l1, l2), accum


def _proximal_gradient_descent(var: XlaOp, *, alpha: XlaOp, l1: XlaOp, l2: XlaOp, delta: XlaOp) -> tuple[XlaOp, ...]:
    return (_proximal(var - delta * alpha, alpha, l1, l2),)


def _adadelta(
    var: XlaOp, accum: XlaOp, updates: XlaOp, *, lr: XlaOp, rho: XlaOp, epsilon: XlaOp, grad: XlaOp
) -> tuple[XlaOp, ...]:
    rest = _one(rho) - rho
    accum = accum * rho + grad * grad * rest
    step = xla.sqrt(updates + epsilon) * xla.rsqrt(accum + epsilon) * grad
    return var - step * lr, accum, updates * rho + step * step * rest


def _moments(m: XlaOp, v: XlaOp, beta1: XlaOp, beta2: XlaOp, grad: XlaOp) -> tuple[XlaOp, XlaOp]:
    return m + (grad - m) * (_one(beta1) - beta1), v + (grad * grad - v) * (_one(beta2) - beta2)


def _adam(
    var: XlaOp,
    m: XlaOp,
    v: XlaOp,
    *,
    beta1_power: XlaOp,
    beta2_power: XlaOp,
    lr: XlaOp,
    beta1: XlaOp,
    beta2: XlaOp,
    epsilon: XlaOp,
    grad: XlaOp,
    use_nesterov: bool,
) -> tuple[XlaOp, ...]:
    rate = lr * xla.sqrt(_one(lr) - beta2_power) / (_one(lr) - beta1_power)
    m, v = _moments(m, v, beta1, beta2, grad)
    direction = grad * (_one(beta1) - beta1) + m * beta1 if use_nesterov else m
    return var - direction * rate / (xla.sqrt(v) + epsilon), m, v


def _amsgrad(
    var: XlaOp,
    m: XlaOp,
    v: XlaOp,
    vhat: XlaOp,
    *,
    beta1_power: XlaOp,
    beta2_power: XlaOp,
    lr: XlaOp,
    beta1: XlaOp,
    beta2: XlaOp,
    epsilon: XlaOp,
    grad: XlaOp,
) -> tuple[XlaOp, ...]:
    rate = lr * xla.sqrt(_one(lr) - beta2_power) / (_one(lr) - beta1_power)
    m, v = _moments(m, v, beta1, beta2, grad)
    vhat = xla.maximum(vhat, v)
    return var - m * rate / (xla.sqrt(vhat) + epsilon), m, v, vhat


def _adamax(
    var: XlaOp,
    m: XlaOp,
    v: XlaOp,
    *,
    beta1_power: XlaOp,
    lr: XlaOp,
    beta1: XlaOp,
    beta2: XlaOp,
    epsilon: XlaOp,
    grad: XlaOp,
) -> tuple[XlaOp, ...]:
    m, v = m + (grad - m) * (_one(beta1) - beta1), xla.maximum(v * beta2, xla.abs_(grad))
    return var - (m / (v + epsilon)) * (lr / (_one(lr) - beta1_power)), m, v


def _signs(m: XlaOp, beta: XlaOp, grad: XlaOp) -> tuple[XlaOp, XlaOp]:
    m = m * beta + grad * (_one(beta) - beta)
    return m, xla.sign(grad) * xla.sign(m)


def _add_sign(
    var: XlaOp, m: XlaOp, *, lr: XlaOp, alpha: XlaOp, sign_decay: XlaOp, beta: XlaOp, grad: XlaOp
) -> tuple[XlaOp, ...]:
    m, agree = _signs(m, beta, grad)
    return var - (agree * sign_decay + alpha) * grad * lr, m


def _power_sign(
    var: XlaOp, m: XlaOp, *, lr: XlaOp, logbase: XlaOp, sign_decay: XlaOp, beta: XlaOp, grad: XlaOp
) -> tuple[XlaOp, ...]:
    m, agree = _signs(m, beta, grad)
    return var - xla.exponential(agree * (logbase * sign_decay)) * grad * lr, m


def _rmsprop(
    var: XlaOp, ms: XlaOp, mom: XlaOp, *, lr: XlaOp, rho: XlaOp, momentum: XlaOp, epsilon: XlaOp, grad: XlaOp
) -> tuple[XlaOp, ...]:
    ms = ms + (grad * grad - ms) * (_one(rho) - rho)
    mom = mom * momentum + grad * lr * xla.rsqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rmsprop(
    var: XlaOp,
    mg: XlaOp,
    ms: XlaOp,
    mom: XlaOp,
    *,
    lr: XlaOp,
    rho: XlaOp,
    momentum: XlaOp,
    epsilon: XlaOp,
    grad: XlaOp,
) -> tuple[XlaOp, ...]:
    rest = _one(rho) - rho
    ms, mg = ms + (grad * grad - ms) * rest, mg + (grad - mg) * rest
    mom = mom * momentum + grad * lr * xla.rsqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _ftrl(
    var: XlaOp,
    accum: XlaOp,
    linear: XlaOp,
    *,
    grad: XlaOp,
    lr: XlaOp,
    l1: XlaOp,
    l2: XlaOp,
    lr_power: XlaOp,
    multiply_linear_by_lr: bool,
    l2_shrinkage: XlaOp | None = None,
) -> tuple[XlaOp, ...]:
    unit = lr if multiply_linear_by_lr else _one(lr)
    two = scalar(lr, 2)
    new_accum = accum + grad * grad
    power, before = (xla.power(x, _fill(-lr_power, x)) for x in (new_accum, accum))
    regularized = grad if l2_shrinkage is None else grad + var * (two * l2_shrinkage)
    linear = linear + regularized * unit - (power - before) / lr * unit * var
    bound = l1 * unit
    solved = (xla.sign(linear) * bound - linear) / (power / lr * unit + two * l2 * unit)
    return select(xla.gt(xla.abs_(linear), _fill(bound, linear)), solved, zeros_like(var)), new_accum, linear


def _fill(number: XlaOp, like: XlaOp) -> XlaOp:
    return xla.broadcast(number, sizes_of(like))


_register("GradientDescent", ("var",), _gradient_descent)
_register("Momentum", ("var", "accum"), _momentum, "use_nesterov")
_register("KerasMomentum", ("var", "accum"), _keras_momentum, "use_nesterov")
_register("Adagrad", ("var", "accum"), _adagrad, "update_slots")
_register("AdagradV2", ("var", "accum"), _adagrad_v2, "update_slots")
_register("AdagradDA", ("var", "gradient_accumulator", "gradient_squared_accumulator"), _adagrad_da)
_register("ProximalAdagrad", ("var", "accum"), _proximal_adagrad)
_register("ProximalGradientDescent", ("var",), _proximal_gradient_descent)
_register("Adadelta", ("var", "accum", "accum_update"), _adadelta)
_register("Adam", ("var", "m", "v"), _adam, "use_nesterov")
_register("AdamWithAmsgrad", ("var", "m", "v", "vhat"), _amsgrad)
_register("AdaMax", ("var", "m", "v"), _adamax)
_register("AddSign", ("var", "m"), _add_sign)
_register("PowerSign", ("var", "m"), _power_sign)
_register("RMSProp", ("var", "ms", "mom"), _rmsprop)
_register("CenteredRMSProp", ("var", "mg", "ms", "mom"), _centered_rmsprop)
_register("Ftrl", ("var", "accum", "linear"), _ftrl, "multiply_linear_by_lr")
_register("FtrlV2", ("var", "accum", "linear"), _ftrl, "multiply_linear_by_lr")
