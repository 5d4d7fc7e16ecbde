"""State of the compilation of one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.lib.size_bounds import Range, SizeBounds
from cyxla.tf2xla.lib.size_checks import SizeChecks
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_expression import XlaExpression
from cyxla.tf2xla.xla_resource import XlaResource
from cyxla.xla.evaluator.constant_evaluator import ConstantEvaluator
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation

if TYPE_CHECKING:
    from cyxla.tf2xla.xla_compiler import XlaCompiler


class XlaContext:
    """State shared by the kernels of one graph.

    Parameters
    ----------
    compiler : XlaCompiler
        Compiler of the functions that kernels call.
    builder : XlaBuilder
        Builder of the computation.
    args : sequence of XlaExpression
        Arguments of the graph.
    """

    def __init__(self, compiler: XlaCompiler, builder: XlaBuilder, args: Sequence[XlaExpression] = ()) -> None:
        self.compiler, self.builder = compiler, builder
        self.args = list(args)
        self.fake_param_shapes: dict[str, TensorShape] = {}  # shapes of FakeParam nodes by name
        self.retvals: dict[int, XlaExpression] = {}
        self.resources: list[XlaResource] = []
        self.size_checks = SizeChecks()  # of sizes that are known only at run time
        self.size_bounds = SizeBounds()
        self._constants = ConstantEvaluator()

    def reducer(self, opcode: str, dtype: DataType) -> XlaComputation:
        """Return the scalar computation of a reduction, cached by opcode and type."""
        return scalar_computation(opcode, element_type(dtype))

    def constant_value(self, expression: XlaExpression) -> np.ndarray[Any, Any] | None:
        """Return the value of an expression if it is known at compile time, else None."""
        if expression.is_constant:
            value: np.ndarray[Any, Any] = expression.value
            return value
        if isinstance(expression.value, XlaOp):
            return self._constants.value(expression.value)
        return None

    def range_of(self, expression: XlaExpression) -> Range | None:
        """Return the least and greatest values of integers, constants or computed of sizes; None if unknown."""
        value = self.constant_value(expression)
        if value is not None:
            return (value.astype(np.int64),) * 2 if value.dtype.kind in "iu" else None
        return self.size_bounds.range_of(expression.value) if isinstance(expression.value, XlaOp) else None
