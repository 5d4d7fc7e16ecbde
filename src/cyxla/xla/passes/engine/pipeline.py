"""Passes, pipelines of passes, and repetition of a pass until it changes nothing.

    pipeline = HloPassPipeline("simplify", Settings(disabled=("cse",)))
    pipeline.add(algebra)
    pipeline.add("dce", dce.run)
    changed = pipeline.run(module)

``CYXLA_DUMP=folder`` writes the program after every pass that changed it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from cyxla import config
from cyxla.errors import FailedPreconditionError, OpError
from cyxla.records import dataclass
from cyxla.xla.hlo import HloModule, verify
from cyxla.xla.passes.engine.observer import current, dumping

MAX_RUNS: Final = 25  # of one HloPassFix
Check = Callable[[HloModule], None]


class HloModulePass(ABC):
    """Rewrite of a module, in place.

    Attributes
    ----------
    name : str
        Name in dumps and in the list of disabled passes.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def run(self, module: HloModule) -> bool:
        """Change the module; return whether anything changed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class FunctionPass(HloModulePass):
    """Pass that calls a function."""

    def __init__(self, name: str, function: Callable[[HloModule], bool]) -> None:
        super().__init__(name)
        self.function = function

    def run(self, module: HloModule) -> bool:
        """Call the function."""
        return self.function(module)


@dataclass(frozen=True)
class Settings:
    """Settings of pipelines.

    Attributes
    ----------
    disabled : tuple of str
        Names of disabled passes.
    verify : bool
        Verify the module after each pass that changed it.
    dump : str
        Root folder of dumps; empty for none.
    """

    disabled: tuple[str, ...] = ()
    verify: bool = False
    dump: str = ""

    @staticmethod
    def from_environment(disabled: tuple[str, ...] | None = None) -> Settings:
        """Return the settings of the ``CYXLA_`` variables; `disabled` replaces theirs."""
        names = config.get("DISABLE_HLO_PASSES") if disabled is None else disabled
        return Settings(tuple(names), config.get("VERIFY"), config.get("DUMP"))


class HloPassPipeline(HloModulePass):
    """Pass that runs passes one after the other.

    Parameters
    ----------
    name : str
        Name of the pipeline, by which a pipeline inside another can be disabled.
    settings : Settings, optional
        Settings; by default those of the environment.
    """

    def __init__(self, name: str, settings: Settings | None = None) -> None:
        super().__init__(name)
        self.settings = settings if settings is not None else Settings.from_environment()
        self.passes: list[HloModulePass] = []
        self.checks: list[Check] = [verify] if self.settings.verify else []
        self._has_run = False
        self._changes = 0
        self._found_nothing: dict[int, int] = {}  # for a pass: number of changes when it last found nothing to do

    def add(self, step: HloModulePass | str, function: Callable[[HloModule], bool] | None = None) -> HloModulePass:
        """Append a pass, or a name and a function.

        Raises
        ------
        FailedPreconditionError
            The pipeline has run.
        """
        self._require_not_run("pass")
        added = step if isinstance(step, HloModulePass) else FunctionPass(step, _require_function(step, function))
        self.passes.append(added)
        return added

    def add_invariant_checker(self, check: Check) -> None:
        """Append a check of the module, made before the first pass and after each that changed something.

        Raises
        ------
        FailedPreconditionError
            The pipeline has run.
        """
        self._require_not_run("checker")
        self.checks.append(check)

    def run(self, module: HloModule) -> bool:
        """Run the passes in order; return True if any changed the module."""
        self._found_nothing.clear()
        with dumping(self.settings.dump, module):
            return self.run_again(module)

    def run_again(self, module: HloModule) -> bool:
        """Repeat `run` on the same module, without the passes that changed nothing since the last change."""
        self._has_run = True
        self._check(module, "before the first pass")
        changed = False
        for number, step in enumerate(self.passes):
            if step.name in self.settings.disabled or self._found_nothing.get(number) == self._changes:
                continue
            if not step.run(module):
                self._found_nothing[number] = self._changes
                continue
            changed = True
            self._changes += 1
            self._check(module, f"after pass {step.name}")
            observer = current()
            if observer is not None and not isinstance(step, HloPassPipeline | HloPassFix):  # these report their parts
                observer.after(f"{self.name}.{step.name}", module)
        return changed

    def _require_not_run(self, name: str) -> None:
        if self._has_run:
            raise FailedPreconditionError(f"pipeline {self.name} has run, and no further {name} can be added")

    def _check(self, module: HloModule, stage: str) -> None:
        for check in self.checks:
            try:
                check(module)
            except OpError as error:
                error.add_note(f"{stage} of pipeline {self.name}")
                raise


def _require_function(name: str, function: Callable[[HloModule], bool] | None) -> Callable[[HloModule], bool]:
    if function is None:
        raise FailedPreconditionError(f"pass {name!r} was added by name alone", hint="give its function as well")
    return function


class HloPassFix(HloModulePass):
    """Pass that repeats another until it changes nothing.

    Parameters
    ----------
    step : HloModulePass
        Pass to repeat, often a pipeline.
    limit : int
        Maximum number of runs.
    """

    def __init__(self, step: HloModulePass, limit: int = MAX_RUNS) -> None:
        super().__init__(step.name)
        self.step, self.limit = step, limit

    def run(self, module: HloModule) -> bool:
        """Repeat the pass until it changes nothing, or `limit` times; return whether it changed the module."""
        if not isinstance(self.step, HloPassPipeline):
            return self._repeat(module, self.step.run)
        with dumping(self.step.settings.dump, module):
            return self._repeat(module, self.step.run_again)

    def _repeat(self, module: HloModule, again: Callable[[HloModule], bool]) -> bool:
        for n in range(self.limit):
            if not (again if n else self.step.run)(module):
                return n > 0
        return self.limit > 0
