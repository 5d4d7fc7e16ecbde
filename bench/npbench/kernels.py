"""Kernels of a checkout of NPBench: their functions, and arguments made anew for each call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

SEED = 1  # of NumPy's global generator, which a few kernels draw their arguments from


@dataclass(frozen=True)
class Kernel:
    """A kernel and one of its presets; the checkout must be on the path of imports."""

    name: str
    info: dict[str, Any]
    preset: str

    @classmethod
    def read(cls, checkout: Path, name: str, preset: str) -> Kernel:
        info = json.loads((checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
        if preset not in info["parameters"]:
            raise SystemExit(f"{name} has no preset {preset}; it has {', '.join(info['parameters'])}")
        return cls(name, info, preset)

    @property
    def tolerance(self) -> float:
        """Return the error that the kernel itself allows, relative to the largest element."""
        return max(self.info.get("norm_error", 0.0), self.info.get("rtol", 0.0))

    def function(self, version: str) -> Callable[..., Any]:
        """Return the kernel's function as the module of one version defines it, such as `numpy` or `numba_np`."""
        return getattr(import_module(self._module(version)), self.info["func_name"])

    def has(self, version: str) -> bool:
        return find_spec(self._module(version)) is not None

    def _module(self, version: str = "") -> str:
        folder = self.info["relative_path"].replace("/", ".")
        return f"npbench.benchmarks.{folder}.{self.info['module_name']}{'_' if version else ''}{version}"

    def arguments(self) -> list[Any]:
        """Return new arguments of a call."""
        values = dict(self.info["parameters"][self.preset])
        init = self.info.get("init")
        if init:
            np.random.seed(SEED)  # noqa: NPY002  it is the global generator that initialisers may use
            made = getattr(import_module(self._module()), init["func_name"])(*[values[n] for n in init["input_args"]])
            names = init["output_args"]
            values.update(zip(names, made if len(names) > 1 else [made], strict=True))
        return [values[name] for name in self.info["input_args"]]


def names(checkout: Path) -> Iterator[str]:
    """Yield the names of all kernels of a checkout."""
    found = sorted(path.stem for path in (checkout / "bench_info").glob("*.json"))
    if not found:
        raise SystemExit(f"{checkout} has no bench_info/*.json: name the folder of a checkout of spcl/npbench")
    yield from found
