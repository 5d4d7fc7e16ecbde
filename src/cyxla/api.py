"""The public function `compile`."""

from __future__ import annotations

from typing import Any

from cyxla.xla.client import compile_program
from cyxla.xla.service import Executable


def compile(program: Any, *specs: Any, platform: str = "cpu", **options: Any) -> Executable:
    """Compile a program into an executable that is called with NumPy arrays.

    Parameters
    ----------
    program : str, bytes, HloModule, XlaComputation or callable
        HLO or StableHLO text, a serialised HloModuleProto or HloProto, a module, a built computation, or a function
        written with NumPy.
    *specs
        Shapes and dtypes of the arguments, as arrays, `cyxla.spec`, or pairs of sizes and a NumPy dtype. They are
        required for a Python function. StableHLO with open sizes is compiled for these sizes alone; without specs it
        is compiled for the sizes of each call. Other programs state their own shapes.
    platform : str
        Platform: ``"cpu"`` generates C, ``"interpreter"`` evaluates on NumPy, other names are those of plugins.
    **options
        Fields of `cyxla.xla.service.CompileOptions`; for functions also the options of `cyxla.jit`.

    Returns
    -------
    Executable
        Executable that takes one array for each parameter and returns one array, or a tuple for a tuple root.

    Raises
    ------
    HloParseError
        The text is neither HLO nor StableHLO.
    InvalidArgumentError
        The program breaks a rule of HLO.
    UnimplementedError
        The platform cannot run the program; the message names every unsupported opcode.

    Examples
    --------
    >>> import numpy as np
    >>> double = compile("ENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] add(x, x) }", platform="interpreter")
    >>> double(np.arange(3, dtype=np.float32))
    array([0., 2., 4.], dtype=float32)
    """
    if callable(program):
        from cyxla.numpy.calls.jitted import compile_function

        return compile_function(program, specs, platform, options)
    return compile_program(program, *map(_pair_to_spec, specs), platform=platform, **options)


def _pair_to_spec(value: Any) -> Any:
    """Return the `cyxla.spec` of a pair of sizes and a dtype; other values unchanged."""
    if type(value) is not tuple:
        return value
    from cyxla.numpy.calls.specs import is_pair, spec  # most programs state their own shapes

    return spec(*value) if is_pair(value) else value
