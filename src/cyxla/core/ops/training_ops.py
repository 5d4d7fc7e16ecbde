"""Updates of optimisers."""

from cyxla.core.framework.op import op

op("ApplyAdagrad", "var: Ref(T), accum: Ref(T), lr: T, grad: T -> out: Ref(T)", "T: numbertype",
    "use_locking: bool = false", "update_slots: bool = true", shape=None,
)  # fmt: skip
op("ApplyAdam",
    "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
    "grad: T -> out: Ref(T)", "T: numbertype", "use_locking: bool = false", "use_nesterov: bool = false", shape=None,
)  # fmt: skip
op("ApplyGradientDescent", "var: Ref(T), alpha: T, delta: T -> out: Ref(T)", "T: numbertype",
    "use_locking: bool = false", shape=None,
)  # fmt: skip
op("ApplyMomentum", "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T -> out: Ref(T)", "T: numbertype",
    "use_locking: bool = false", "use_nesterov: bool = false", shape=None,
)  # fmt: skip
op("ApplyRMSProp",
    "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T -> out: Ref(T)",
    "T: numbertype", "use_locking: bool = false", shape=None,
)  # fmt: skip
op("ResourceApplyAdaMax",
    "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyAdadelta",
    "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", "update_slots: bool = true", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyAdagradDA",
    "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, lr: T, "
    "l1: T, l2: T, global_step: int64 ->", "T: numbertype", "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyAdagradV2", "var: resource, accum: resource, lr: T, epsilon: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", "update_slots: bool = true", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyAdam",
    "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
    "epsilon: T, grad: T ->", "T: numbertype", "use_locking: bool = false", "use_nesterov: bool = false", stateful=True,
    shape=None,
)  # fmt: skip
op("ResourceApplyAdamWithAmsgrad",
    "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, "
    "beta2: T, epsilon: T, grad: T ->", "T: numbertype", "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyAddSign", "var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyCenteredRMSProp",
    "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyFtrl",
    "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T ->", "T: numbertype",
    "use_locking: bool = false", "multiply_linear_by_lr: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyFtrlV2",
    "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, "
    "lr_power: T ->", "T: numbertype", "use_locking: bool = false", "multiply_linear_by_lr: bool = false",
    stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyGradientDescent", "var: resource, alpha: T, delta: T ->", "T: numbertype", "use_locking: bool = false",
    stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyKerasMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->", "T: numbertype",
    "use_locking: bool = false", "use_nesterov: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->", "T: numbertype",
    "use_locking: bool = false", "use_nesterov: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyPowerSign", "var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T ->",
    "T: numbertype", "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyProximalAdagrad", "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyProximalGradientDescent", "var: resource, alpha: T, l1: T, l2: T, delta: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceApplyRMSProp",
    "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->", "T: numbertype",
    "use_locking: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ResourceSparseApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices ->",
    "T: numbertype", "Tindices: {int32, int64}", "use_locking: bool = false", "update_slots: bool = true",
    stateful=True, shape=None,
)  # fmt: skip
op("ResourceSparseApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T ->",
    "T: numbertype", "Tindices: {int32, int64}", "use_locking: bool = false", "use_nesterov: bool = false",
    stateful=True, shape=None,
)  # fmt: skip
