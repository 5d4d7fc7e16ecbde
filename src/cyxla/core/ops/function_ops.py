"""Arguments and results of functions."""

from cyxla.core.framework.op import op

op("_Arg", "-> output: T", "T: type", "index: int >= 0", stateful=True, system=True, shape=None)
op("_ArrayToList", "input: N * T -> output: out_types", "T: type", "N: int", "out_types: list(type)", system=True,
    shape=None,
)  # fmt: skip
op("_DeviceArg", "-> output: T", "T: type", "index: int >= 0", stateful=True, system=True, shape=None)
op("_DeviceRetval", "input: T ->", "T: type", "index: int >= 0", stateful=True, system=True, shape=None)
op("_EagerConst", "input: T -> output: T", "T: type", system=True, shape=None)
op("_ListToArray", "input: Tin -> output: N * T", "Tin: list(type)", "T: type", "N: int", system=True, shape=None)
op("_Retval", "input: T ->", "T: type", "index: int >= 0", stateful=True, system=True, shape=None)
