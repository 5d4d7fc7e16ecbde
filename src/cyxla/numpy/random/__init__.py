"""Random numbers determined by keys: the same on every platform and for any number of threads.

`key` makes a key from a number; `split` and `fold_in` derive others from it. Every supported method of
`numpy.random.Generator` is also a function of a key and the method's arguments: ``normal(key, 0.0, 1.0, size=3)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cyxla.numpy.random import keys
from cyxla.numpy.random.keys import key

if TYPE_CHECKING:
    from cyxla.numpy.random.keys import fold_in, split
    from cyxla.numpy.random.traced_generator import TracedGenerator, generator

_METHODS = (
    "beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel",
    "hypergeometric", "integers", "laplace", "logistic", "lognormal", "logseries", "multinomial",
    "multivariate_hypergeometric", "multivariate_normal", "negative_binomial", "noncentral_chisquare", "noncentral_f",
    "normal", "pareto", "permutation", "permuted", "poisson", "power", "random", "rayleigh", "standard_cauchy",
    "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises",
    "wald", "weibull", "zipf",
)  # fmt: skip
__all__ = ["TracedGenerator", "fold_in", "generator", "key", "split", *_METHODS]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cyxla.random' has no attribute {name!r}")
    functional = import_module("cyxla.numpy.random.functional")
    if name in ("generator", "TracedGenerator"):
        return getattr(functional, name)
    if name in ("split", "fold_in"):
        return functional.traced_or_compiled(getattr(keys, name))
    return functional.method(name)
