"""The meaning of HLO on NumPy arrays: plain, slow, and what every other way of running HLO is measured against."""

from cyxla.xla.evaluator import control as _control
from cyxla.xla.evaluator import convert as _convert
from cyxla.xla.evaluator import data_movement as _data_movement
from cyxla.xla.evaluator import elementwise as _elementwise
from cyxla.xla.evaluator import functional as _functional
from cyxla.xla.evaluator import sorting as _sorting
from cyxla.xla.evaluator.evaluation import Evaluation, Options, evaluate, evaluate_computation
from cyxla.xla.evaluator.registry import EVALUATORS, evaluates
from cyxla.xla.evaluator.values import TOKEN_VALUE, Token, Value

__all__ = ["EVALUATORS", "TOKEN_VALUE", "Evaluation", "Options", "Token", "Value", "evaluate", "evaluate_computation", "evaluates"]
