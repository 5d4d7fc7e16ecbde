"""Pipelines run their passes in order, check, dump, leave out and repeat."""

import pytest

from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from cyxla.types import Shape
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.engine.pipeline import FunctionPass, HloModulePass, HloPassFix, HloPassPipeline, Settings

TEXT = "HloModule m\nENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }"
QUIET = Settings()


def module():
    return parse_module(TEXT)


def times(n, log=None, name="p"):
    """A pass that changes something n times."""
    left = [n]

    def run(m):
        if log is not None:
            log.append(name)
        left[0] -= 1
        return left[0] >= 0

    return FunctionPass(name, run)


def test_passes_run_in_order_and_say_whether_they_changed_anything():
    log = []
    pipeline = HloPassPipeline("p", QUIET)
    for name, n in (("a", 0), ("b", 1), ("c", 0)):
        pipeline.add(times(n, log, name))
    assert pipeline.run(module()) is True
    assert pipeline.run(module()) is False
    assert log == ["a", "b", "c"] * 2


def test_nothing_is_added_after_a_run():
    pipeline = HloPassPipeline("p", QUIET)
    pipeline.run(module())
    with pytest.raises(FailedPreconditionError) as caught:
        pipeline.add(times(0))
    assert caught.value.number == 9
    with pytest.raises(FailedPreconditionError):
        pipeline.add_invariant_checker(lambda m: None)


def test_a_name_needs_a_function():
    with pytest.raises(FailedPreconditionError):
        HloPassPipeline("p", QUIET).add("algebra")


def test_the_base_class_is_no_pass():
    with pytest.raises(TypeError, match="abstract method"):
        HloModulePass("nothing")


@pytest.mark.parametrize("changes", [0, 1])
def test_checkers_run_before_and_after_each_change(changes):
    seen = []
    pipeline = HloPassPipeline("p", QUIET)
    pipeline.add_invariant_checker(lambda m: seen.append(m))
    pipeline.add(times(changes))
    pipeline.run(module())
    assert len(seen) == 1 + changes


def test_a_pass_that_breaks_the_program_is_named():
    def spoil(m):
        m.entry.root.shape = Shape.array("f32", (3,))
        return True

    pipeline = HloPassPipeline("p", Settings(verify=True))
    pipeline.add("spoil", spoil)
    with pytest.raises(ShapeError) as caught:
        pipeline.run(module())
    assert "after pass spoil of pipeline p" in caught.value.__notes__[0]


def test_disabled_passes_do_not_run():
    log = []
    pipeline = HloPassPipeline("p", Settings(disabled=("a",)))
    pipeline.add(times(1, log, "a"))
    pipeline.add(times(1, log, "b"))
    pipeline.run(module())
    assert log == ["b"]


def test_settings_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("CYXLA_DISABLE_HLO_PASSES", "cse, dce")
    monkeypatch.setenv("CYXLA_VERIFY", "1")
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    assert Settings.from_environment() == Settings(("cse", "dce"), True, str(tmp_path))
    assert Settings.from_environment(("algebra",)).disabled == ("algebra",)


def test_passes_that_change_the_program_are_dumped(tmp_path):
    pipeline = HloPassPipeline("p", Settings(dump=str(tmp_path)))
    for name, n in (("a", 1), ("b", 0), ("c", 1)):
        pipeline.add(times(n, name=name))
    pipeline.run(module())
    (folder,) = tmp_path.iterdir()
    written = [f"{n}{kind}" for n in ("01_p.a", "02_p.c") for kind in (".hlo", ".rewrites.txt")]
    assert sorted(f.name for f in folder.iterdir()) == ["00_input.hlo", *written]
    parse_module((folder / "01_p.a.hlo").read_text()).verify()


def test_runs_of_a_fix_are_numbered_in_one_folder(tmp_path):
    pipeline = HloPassPipeline("p", Settings(dump=str(tmp_path)))
    pipeline.add(times(2, name="a"))
    HloPassFix(pipeline).run(module())
    (folder,) = tmp_path.iterdir()
    assert sorted(f.name for f in folder.glob("*.hlo")) == ["00_input.hlo", "01_p.a.hlo", "02_p.a.hlo"]


@pytest.mark.parametrize("changes, runs", [(0, 1), (3, 4), (99, 25)])
def test_fix_repeats_until_nothing_changes(changes, runs):
    log = []
    assert HloPassFix(times(changes, log)).run(module()) is (changes > 0)
    assert len(log) == runs


def test_a_broken_program_is_refused_before_the_first_pass():
    m = module()
    m.entry.root.shape = Shape.array("f32", (3,))
    with pytest.raises(InvalidArgumentError):
        HloPassPipeline("p", Settings(verify=True)).run(m)
