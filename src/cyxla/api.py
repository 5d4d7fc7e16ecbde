"""The front doors."""

from __future__ import annotations

from typing import Any

from cyxla.xla.client import compile_program
from cyxla.xla.service import Executable


def compile(program: Any, *specs: Any, platform: str = "cpu", **options: Any) -> Executable:
    """Compile a program into something to call with NumPy arrays.

    Parameters
    ----------
    program : str, bytes, HloModule, XlaComputation or callable
        HLO or StableHLO text, a serialised HloModuleProto or HloProto, a module, a built computation, or a function
        written with NumPy.
    *specs
        Arrays, `cyxla.spec`, or pairs of sizes and a dtype of NumPy, like the arguments, of a Python function or of
        StableHLO that leaves sizes open; other programs state their own.
    platform : str
        ``"cpu"`` generates C, ``"interpreter"`` evaluates on NumPy; a plugin's name is its own.
    **options
        Fields of `cyxla.xla.service.CompileOptions`; for functions also what `cyxla.jit` takes.

    Returns
    -------
    Executable
        Takes one array for each parameter; gives one array, or a tuple for a tuple root.

    Raises
    ------
    HloParseError
        The text is neither HLO nor StableHLO.
    InvalidArgumentError
        The program breaks a rule of HLO.
    UnimplementedError
        The platform cannot run it; the message names every opcode in the way.

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
    return compile_program(program, *map(_unpaired, specs), platform=platform, **options)


def _unpaired(given: Any) -> Any:
    """Make a pair of sizes and a dtype what `cyxla.spec` gives; all else stays."""
    if type(given) is not tuple:
        return given
    from cyxla.numpy.calls.specs import is_pair, spec  # most programs state their own shapes

    return spec(*given) if is_pair(given) else given
