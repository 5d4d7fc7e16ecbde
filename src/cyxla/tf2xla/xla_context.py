"""The state of one compilation of one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_expression import XlaExpression
from cyxla.tf2xla.xla_resource import XlaResource
from cyxla.xla.evaluator.constant_evaluator import ConstantEvaluator
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation

if TYPE_CHECKING:
    from cyxla.tf2xla.xla_compiler import XlaCompiler


class XlaContext:
    """What the kernels of one graph share.

    Parameters
    ----------
    compiler : XlaCompiler
        Compiles the functions they call.
    builder : XlaBuilder
        Collects their instructions.
    args : sequence of XlaExpression
        The graph's arguments.
    """

    def __init__(self, compiler: XlaCompiler, builder: XlaBuilder, args: Sequence[XlaExpression] = ()) -> None:
        self.compiler, self.builder = compiler, builder
        self.args = list(args)
        self.stand_ins: dict[str, TensorShape] = {}  # shapes that FakeParam nodes take, by name
        self.retvals: dict[int, XlaExpression] = {}
        self.resources: list[XlaResource] = []
        self._constants = ConstantEvaluator()

    def reducer(self, opcode: str, dtype: DataType) -> XlaComputation:
        """The computation of two scalars that a reduction joins with; made once for each opcode and type."""
        return scalar_computation(opcode, element_type(dtype))

    def constant_value(self, expression: XlaExpression) -> np.ndarray[Any, Any] | None:
        """The value, if it is known while compiling."""
        if expression.is_constant:
            value: np.ndarray[Any, Any] = expression.value
            return value
        if isinstance(expression.value, XlaOp):
            return self._constants.value(expression.value)
        return None
