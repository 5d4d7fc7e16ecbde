"""Switches, merges and loop frames."""

from cyxla.core.framework.op import op

op("ControlTrigger", "->", shape=None)
op("Enter", "data: T -> output: T", "T: type", "frame_name: string", "is_constant: bool = false",
    "parallel_iterations: int = 10", shape=None,
)  # fmt: skip
op("Exit", "data: T -> output: T", "T: type", shape=None)
op("LoopCond", "input: bool -> output: bool", shape=None)
op("Merge", "inputs: N * T -> output: T, value_index: int32", "T: type", "N: int", shape=None)
op("NextIteration", "data: T -> output: T", "T: type", shape=None)
op("NoOp", "->", system=True, shape=None)
op("RefEnter", "data: Ref(T) -> output: Ref(T)", "T: type", "frame_name: string", "is_constant: bool = false",
    "parallel_iterations: int = 10", shape=None,
)  # fmt: skip
op("RefExit", "data: Ref(T) -> output: Ref(T)", "T: type", shape=None)
op("RefIdentity", "input: Ref(T) -> output: Ref(T)", "T: type", allows_uninitialized_input=True, shape=None)
op("RefMerge", "inputs: Ref(N * T) -> output: Ref(T), value_index: int32", "T: type", "N: int", shape=None)
op("RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type", shape=None)
op("RefSelect", "index: int32, inputs: Ref(N * T) -> output: Ref(T)", "T: type", "N: int", shape=None)
op("RefSwitch", "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)", "T: type",
    allows_uninitialized_input=True, shape=None,
)  # fmt: skip
op("Switch", "data: T, pred: bool -> output_false: T, output_true: T", "T: type", shape=None)
