"""Plugin of pytest: the options ``--backend`` and ``--backend-list``, and the argument `backend` of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cyxla.errors import OpError
from cyxla.testing.lists import Entry, read_list
from cyxla.xla.client import LocalClient
from cyxla.xla.service import platforms

BUILT_IN = ("interpreter", "cpu")
_ENTRIES = pytest.StashKey[list[Entry]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("cyxla")
    group.addoption(
        "--backend",
        action="append",
        metavar="NAME",
        type=lambda text: text.split(","),
        help="run the tests of backends alone, on this platform, or on several: NAME,NAME; repeatable",
    )
    group.addoption(
        "--backend-list", action="append", metavar="FILE", default=[],
        help="tests that the backend does not run or is known to fail: 'skip PATTERN reason' or 'fails PATTERN reason'",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Check the options."""
    try:
        config.stash[_ENTRIES] = [e for path in config.getoption("--backend-list") for e in read_list(path)]
        for name in _chosen(config):
            LocalClient(name)
    except OpError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(trylast=True)  # rows of a table on each platform, one after the other
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `backend` on each platform."""
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", _chosen(metafunc.config) or BUILT_IN)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of no backend if there is a choice of backends, and apply the lists."""
    if config.getoption("--backend"):
        chosen = [item for item in items if "backend" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen
    for item in items:
        for entry in _entries_of(config, item):
            item.add_marker(_mark(entry))


def _chosen(config: pytest.Config) -> list[str]:
    """Return the platforms that the option names."""
    return [name for names in config.getoption("--backend") or () for name in names]


def _entries_of(config: pytest.Config, item: pytest.Item) -> Iterator[Entry]:
    name = _name_in_lists(item)
    for entry in config.stash[_ENTRIES]:
        if entry.takes(name):
            entry.matches += 1
            yield entry


def _name_in_lists(item: pytest.Item) -> str:
    """Return the file and the name of a test, without the backend."""
    test = item.nodeid.partition("::")[2]
    callspec = getattr(item, "callspec", None)
    backend = callspec.params.get("backend", "") if callspec is not None else ""
    name = test.removesuffix(f"[{backend}]")
    return f"{item.path.name}::{name.removesuffix(f'-{backend}]') + ']' if name.endswith(f'-{backend}]') else name}"


def _mark(entry: Entry) -> pytest.MarkDecorator:
    reason = f"listed in {entry.where}{f': {entry.reason}' if entry.reason else ''}"
    return pytest.mark.skip(reason=reason) if entry.verb == "skip" else pytest.mark.xfail(reason=reason, strict=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the entries of lists that match no test."""
    for entry in config.stash[_ENTRIES]:
        if not entry.matches:
            terminalreporter.write_line(f"{entry.where}: no test that was collected matches {entry.pattern!r}")


def pytest_report_header(config: pytest.Config) -> str:
    """Name the backends."""
    chosen = _chosen(config)
    return f"backends: {', '.join(chosen or BUILT_IN)}" + ("" if chosen else f" (of {', '.join(platforms())})")
