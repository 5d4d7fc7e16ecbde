"""Decorators that register kernels: functions of the context, classes, and pure functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from cyxla.core.framework.kernel_def import Name, as_types
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.op_kernel import (
    ArrayKernel,
    Factory,
    FunctionKernel,
    OpKernel,
    OpKernelConstruction,
)

F = TypeVar("F", bound=Callable[..., Any])
Types = dict[str, Any]


def _register(
    names: str | Sequence[str],
    device: str,
    types: Types | None,
    host_memory: Sequence[str],
    label: str,
    priority: int,
    factory: Factory,
    class_name: str,
    registry: KernelRegistry | None,
) -> None:
    target = KernelRegistry.global_() if registry is None else registry
    for name in (names,) if isinstance(names, str) else names:
        chain = Name(name).device(device).host_memory(*host_memory).label(label).priority(priority)
        for attr, allowed in (types or {}).items():
            chain.type_constraint(attr, as_types(allowed))
        target.register(chain.build(), factory, class_name)


def kernel(
    op: str | Sequence[str],
    *,
    device: str = "CPU",
    types: Types | None = None,
    host_memory: Sequence[str] = (),
    label: str = "",
    priority: int = 0,
    expensive: bool = False,
    registry: KernelRegistry | None = None,
) -> Callable[[F], F]:
    """Register a function of the context, or a class of `OpKernel`, as the kernel of an op or of several.

    Parameters
    ----------
    op : str or sequence of str
        Names of ops.
    device, types, host_memory, label, priority
        See `KernelDef`; `types` are given in any spelling, one or several per attribute.
    expensive : bool
        Worth a thread of the pool.
    registry : KernelRegistry, optional
        Registry to add to; the global one by default.
    """

    def decorate(target: F) -> F:
        if isinstance(target, type):
            if expensive:
                target.is_expensive = True  # type: ignore[attr-defined]
            factory: Factory = target
        else:
            factory = partial(_make_kernel, FunctionKernel, expensive, function=target)
        _register(op, device, types, host_memory, label, priority, factory, target.__name__, registry)
        return target

    return decorate


def _make_kernel(
    cls: Callable[..., OpKernel], expensive: bool, construction: OpKernelConstruction, **kwargs: Any
) -> OpKernel:
    kernel = cls(construction, **kwargs)
    kernel.is_expensive = expensive
    return kernel


@overload
def array_kernel(op: str | Sequence[str], fn: F, **kwargs: Any) -> F: ...
@overload
def array_kernel(op: str | Sequence[str], fn: None = None, **kwargs: Any) -> Callable[[F], F]: ...
def array_kernel(  # type: ignore[misc]  # the overloads leave the options out
    op: str | Sequence[str],
    fn: F | None = None,
    *,
    attrs: Sequence[str] = (),
    device: str = "CPU",
    types: Types | None = None,
    label: str = "",
    priority: int = 0,
    expensive: bool = False,
    registry: KernelRegistry | None = None,
) -> F | Callable[[F], F]:
    """Register a pure function of arrays as a kernel; without `fn`, a decorator that does so.

    Parameters
    ----------
    op : str or sequence of str
        Names of ops.
    fn : callable
        ``fn(*inputs, **attrs) -> array or tuple of arrays``: an argument that is a list comes, and goes, as a list.
        It must not write to its inputs. Results of rank 0 may be NumPy scalars.
    attrs : sequence of str
        Attributes to pass as keywords under their own names; a type comes as `DataType`.
    device, types, label, priority
        See `KernelDef`.
    expensive : bool
        Worth a thread of the pool.
    registry : KernelRegistry, optional
        Registry to add to; the global one by default.
    """

    def decorate(function: F) -> F:
        factory = partial(_make_kernel, ArrayKernel, expensive, function=function, attrs=tuple(attrs))
        class_name = getattr(function, "__name__", type(function).__name__)
        _register(op, device, types, (), label, priority, factory, class_name, registry)
        return function

    return decorate if fn is None else decorate(fn)
