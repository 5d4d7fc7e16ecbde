"""The meaning of HLO on NumPy arrays: plain, slow, and what every other way of running HLO is measured against."""

from cyxla.xla.evaluator import batch_norm as _batch_norm
from cyxla.xla.evaluator import collective as _collective
from cyxla.xla.evaluator import contraction as _contraction
from cyxla.xla.evaluator import control as _control
from cyxla.xla.evaluator import convert as _convert
from cyxla.xla.evaluator import convolution as _convolution
from cyxla.xla.evaluator import custom_call as _custom_call
from cyxla.xla.evaluator import data_movement as _data_movement
from cyxla.xla.evaluator import elementwise as _elementwise
from cyxla.xla.evaluator import fft as _fft
from cyxla.xla.evaluator import functional as _functional
from cyxla.xla.evaluator import gather_scatter as _gather_scatter
from cyxla.xla.evaluator import host as _host
from cyxla.xla.evaluator import linalg as _linalg
from cyxla.xla.evaluator import random_bits as _random_bits
from cyxla.xla.evaluator import sorting as _sorting
from cyxla.xla.evaluator import windows as _windows
from cyxla.xla.evaluator.custom_call import check_custom_calls, register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation, Options, evaluate, evaluate_computation, evaluate_instruction
from cyxla.xla.evaluator.registry import EVALUATORS, evaluates
from cyxla.xla.evaluator.values import TOKEN_VALUE, Token, Value

__all__ = [
    "EVALUATORS", "TOKEN_VALUE", "Evaluation", "Options", "Token", "Value", "check_custom_calls", "evaluate", "evaluate_computation", "evaluate_instruction",
    "evaluates", "register_custom_call",
]  # fmt: skip
