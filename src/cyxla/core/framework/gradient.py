"""Gradient functions: who differentiates which op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from cyxla.core.framework.loaders import loader
from cyxla.core.framework.registration_batch import current_batch, directly, staged_for
from cyxla.errors import AlreadyExistsError, NotFoundError
from cyxla.forking import new_lock

GradientFn = Callable[..., Any]
F = TypeVar("F", bound=GradientFn)


@dataclass(frozen=True)
class Gradient:
    """Gradient function of an op and its properties.

    Parameters
    ----------
    fn : function or None
        Takes the node and one gradient per output; gives one per input. None: nothing flows back through the op.
    none_grads : bool
        Whether an output that nothing flows back to comes as None instead of zeros.
    """

    fn: GradientFn | None
    none_grads: bool = False


class GradientRegistry:
    """Gradient functions by op.

    Parameters
    ----------
    catalogue : function, optional
        Function called before the first lookup, to register the built-in gradients.
    """

    rank = 3

    def __init__(self, catalogue: Callable[[], None] | None = None) -> None:
        self._catalogue = catalogue
        self.lock = new_lock()  # the thread that loads the catalogue also registers its entries
        self._gradients: dict[str, Gradient] = {}

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> GradientRegistry:
        """The registry of the process; the catalogue enters it with the first look-up."""
        return GradientRegistry(loader("gradients"))

    def register(self, op_name: str, gradient: Gradient) -> None:
        """Say how an op is differentiated.

        Raises
        ------
        AlreadyExistsError
            It was said before.
        """
        batch = current_batch()
        staged = self._gradients if batch is None else batch.stage(self, dict)
        if op_name in self._gradients or self._staged(op_name) or staged.setdefault(op_name, gradient) is not gradient:
            raise AlreadyExistsError(f"op {op_name} already has a gradient", op=op_name)

    def _staged(self, op_name: str) -> Gradient | None:
        """A gradient that this thread has staged."""
        return next((staged[op_name] for staged in staged_for(self) if op_name in staged), None)

    def check_staged(self, staged: dict[str, Gradient]) -> None:
        """Raise if a gradient that a batch brings is there by now."""
        for op_name in staged:
            if op_name in self._gradients:
                raise AlreadyExistsError(f"op {op_name} already has a gradient", op=op_name)

    def publish(self, staged: dict[str, Gradient]) -> None:
        """Let in the gradients of a batch."""
        self._gradients |= staged

    def _load(self) -> None:
        if self._catalogue is not None:
            with self.lock:
                if self._catalogue is not None:
                    with directly():
                        self._catalogue()
                    self._catalogue = None  # last, so that other threads wait until all entries are registered

    def find(self, op_name: str) -> Gradient | None:
        """Return the gradient function of an op, or None if it has none."""
        self._load()
        return self._gradients.get(op_name) or self._staged(op_name)

    def look_up(self, op_name: str) -> Gradient:
        """Return the gradient function of an op.

        Raises
        ------
        NotFoundError
            Nobody has said.
        """
        entry = self.find(op_name)
        if entry is None:
            raise NotFoundError(
                f"no gradient is registered for op {op_name}",
                op=op_name,
                hint="register one with @gradient, or no_gradient if the op is not differentiable",
            )
        return entry

    def ops(self) -> list[str]:
        """All ops that were spoken of, sorted."""
        self._load()
        return sorted(self._gradients)


def gradient(*op_names: str, none_grads: bool = False, registry: GradientRegistry | None = None) -> Callable[[F], F]:
    """Register a gradient function.

    The function takes the node and one gradient for each output, and gives one tensor or None for each input: alone
    where there is one input, else a tuple or list in the inputs' order. It computes with `apply_op` and the operators
    of tensors.

    Parameters
    ----------
    *op_names : str
        Ops that it serves.
    none_grads : bool
        Whether it takes None for outputs that nothing flows back to; otherwise they come as zeros.
    registry : GradientRegistry, optional
        Registry to add to; the global one by default.

    Examples
    --------
    >>> fresh = GradientRegistry()
    >>> @gradient("Twice", registry=fresh)
    ... def _(op, dy):
    ...     return dy + dy
    >>> fresh.ops()
    ['Twice']
    """

    def register(fn: F) -> F:
        for name in op_names:
            (registry or GradientRegistry.global_()).register(name, Gradient(fn, none_grads))
        return fn

    return register


def no_gradient(*op_names: str, registry: GradientRegistry | None = None) -> None:
    """Say that nothing flows back through ops: their results are no smooth functions of their inputs."""
    for name in op_names:
        (registry or GradientRegistry.global_()).register(name, Gradient(None))
