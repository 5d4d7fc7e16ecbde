"""Optimiser updates."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.gathers import variable_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType

_GRADIENTS = ("grad", "delta")  # inputs with the shape of the variable; other numbers are scalars


def _merged_slots(c: InferenceContext) -> TensorShape:
    """Merge the shapes of the variable and its slots."""
    shape = UNKNOWN
    for i, arg in enumerate(c.op_def.input_arg):
        if arg.is_ref:
            shape = c.merge(shape, c.input(i))
        elif arg.type == DataType.DT_RESOURCE:
            shape = c.merge(shape, variable_shape(c, i))
    return shape


def _check_scalars(c: InferenceContext) -> None:
    for i, arg in enumerate(c.op_def.input_arg):
        if not (arg.is_ref or arg.type == DataType.DT_RESOURCE or arg.name in (*_GRADIENTS, "indices")):
            c.with_rank(c.input(i), 0)


def _apply_shape(c: InferenceContext) -> None:
    """Merge slots and gradient, and check the scalars; a reference variable is also the output."""
    _check_scalars(c)
    shape = _merged_slots(c)
    for name in _GRADIENTS:
        if c.op_def.find_input(name):
            shape = c.merge(shape, c.input(name))
    if c.num_outputs:
        c.set_output(0, shape)


def _sparse_apply_shape(c: InferenceContext) -> None:
    """Check that the gradient has one row per index."""
    _check_scalars(c)
    indices, grad, shape = c.with_rank(c.input("indices"), 1), c.input("grad"), _merged_slots(c)
    c.merge(grad, c.concatenate(indices, c.sub_shape(c.with_rank_at_least(shape, 1), 1)))


op("ApplyAdagrad", "var: Ref(T), accum: Ref(T), lr: T, grad: T -> out: Ref(T)", "T: numbertype",
    "use_locking: bool = false", "update_slots: bool = true", shape=_apply_shape, doc="Update a variable by Adagrad.",
)  # fmt: skip
op("ApplyAdam",
    "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
    "grad: T -> out: Ref(T)", "T: numbertype", "use_locking: bool = false", "use_nesterov: bool = false",
    shape=_apply_shape, doc="Update a variable by Adam.",
)  # fmt: skip
op("ApplyGradientDescent", "var: Ref(T), alpha: T, delta: T -> out: Ref(T)", "T: numbertype",
    "use_locking: bool = false", shape=_apply_shape, doc="Update a variable by gradient descent.",
)  # fmt: skip
op("ApplyMomentum", "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T -> out: Ref(T)", "T: numbertype",
    "use_locking: bool = false", "use_nesterov: bool = false", shape=_apply_shape,
    doc="Update a variable by gradient descent with momentum.",
)  # fmt: skip
op("ApplyRMSProp",
    "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T -> out: Ref(T)",
    "T: numbertype", "use_locking: bool = false", shape=_apply_shape, doc="Update a variable by RMSProp.",
)  # fmt: skip
op("ResourceApplyAdaMax",
    "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by AdaMax.",
)  # fmt: skip
op("ResourceApplyAdadelta",
    "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=_apply_shape, doc="Update a variable by Adadelta.",
)  # fmt: skip
op("ResourceApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", "update_slots: bool = true", stateful=True, shape=_apply_shape,
    doc="Update a variable by Adagrad.",
)  # fmt: skip
op("ResourceApplyAdagradDA",
    "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, lr: T, "
    "l1: T, l2: T, global_step: int64 ->", "T: numbertype", "use_locking: bool = false", stateful=True,
    shape=_apply_shape, doc="Update a variable by proximal Adagrad with dual averaging.",
)  # fmt: skip
op("ResourceApplyAdagradV2", "var: resource, accum: resource, lr: T, epsilon: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", "update_slots: bool = true", stateful=True, shape=_apply_shape,
    doc="Update a variable by Adagrad with an epsilon.",
)  # fmt: skip
op("ResourceApplyAdam",
    "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
    "epsilon: T, grad: T ->", "T: numbertype", "use_locking: bool = false", "use_nesterov: bool = false", stateful=True,
    shape=_apply_shape, doc="Update a variable by Adam.",
)  # fmt: skip
op("ResourceApplyAdamWithAmsgrad",
    "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, "
    "beta2: T, epsilon: T, grad: T ->", "T: numbertype", "use_locking: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by Adam with AMSGrad.",
)  # fmt: skip
op("ResourceApplyAddSign", "var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by AddSign.",
)  # fmt: skip
op("ResourceApplyCenteredRMSProp",
    "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by centred RMSProp.",
)  # fmt: skip
op("ResourceApplyFtrl",
    "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T ->", "T: numbertype",
    "use_locking: bool = false", "multiply_linear_by_lr: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by FTRL-proximal.",
)  # fmt: skip
op("ResourceApplyFtrlV2",
    "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, "
    "lr_power: T ->", "T: numbertype", "use_locking: bool = false", "multiply_linear_by_lr: bool = false",
    stateful=True, shape=_apply_shape, doc="Update a variable by FTRL-proximal with shrinkage.",
)  # fmt: skip
op("ResourceApplyGradientDescent", "var: resource, alpha: T, delta: T ->", "T: numbertype", "use_locking: bool = false",
    stateful=True, shape=_apply_shape, doc="Update a variable by gradient descent.",
)  # fmt: skip
op("ResourceApplyKerasMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->", "T: numbertype",
    "use_locking: bool = false", "use_nesterov: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by gradient descent with momentum that includes the learning rate.",
)  # fmt: skip
op("ResourceApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->", "T: numbertype",
    "use_locking: bool = false", "use_nesterov: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by gradient descent with momentum.",
)  # fmt: skip
op("ResourceApplyPowerSign", "var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by PowerSign.",
)  # fmt: skip
op("ResourceApplyProximalAdagrad", "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=_apply_shape, doc="Update a variable by proximal Adagrad.",
)  # fmt: skip
op("ResourceApplyProximalGradientDescent", "var: resource, alpha: T, l1: T, l2: T, delta: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=_apply_shape,
    doc="Update a variable by proximal gradient descent.",
)  # fmt: skip
op("ResourceApplyRMSProp",
    "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=_apply_shape, doc="Update a variable by RMSProp.",
)  # fmt: skip
op("ResourceSparseApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices ->",
    "T: numbertype", "Tindices: {int32, int64}", "use_locking: bool = false", "update_slots: bool = true",
    stateful=True, shape=_sparse_apply_shape, doc="Update rows of a variable by Adagrad.",
)  # fmt: skip
op("ResourceSparseApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T ->",
    "T: numbertype", "Tindices: {int32, int64}", "use_locking: bool = false", "use_nesterov: bool = false",
    stateful=True, shape=_sparse_apply_shape, doc="Update rows of a variable by gradient descent with momentum.",
)  # fmt: skip
