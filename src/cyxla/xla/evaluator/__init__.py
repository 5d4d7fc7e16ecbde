"""Evaluation of HLO on NumPy arrays: simple and slow, the reference for all other ways to run HLO."""

from cyxla.xla.evaluator.custom_calls import check_custom_calls, load_built_in_by, register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation, Options, evaluate, evaluate_computation, evaluate_instruction
from cyxla.xla.evaluator.ops import (
    batch_norm,
    collective,
    contraction,
    control,
    convert,
    convolution,
    data_movement,
    elementwise,
    fft,
    functional,
    gather_scatter,
    host_transfer,
    linalg,
    random_bits,
    sorting,
    windows,
)
from cyxla.xla.evaluator.registry import EVALUATORS, evaluates
from cyxla.xla.evaluator.values import TOKEN_VALUE, Token, Value

_FAMILIES = (  # importing a family registers its opcodes
    batch_norm, collective, contraction, control, convert, convolution, data_movement, elementwise, fft,
    functional, gather_scatter, host_transfer, linalg, random_bits, sorting, windows,
)  # fmt: skip

__all__ = [
    "EVALUATORS", "TOKEN_VALUE", "Evaluation", "Options", "Token", "Value", "check_custom_calls", "evaluate",
    "evaluate_computation", "evaluate_instruction", "evaluates", "register_custom_call",
]  # fmt: skip


def _load_built_in_targets() -> None:
    from cyxla.xla.evaluator.targets import built_in  # which registers them

    _ = built_in


load_built_in_by(_load_built_in_targets)
