"""The disk cache: entries survive a round trip or are misses, whatever happens to the files, and no call fails."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builds.compiled_text import compile_c

from cyxla.xla.cpu.c import prelude
from cyxla.xla.cpu.native import build, cache, compiler_search
from cyxla.xla.cpu.native import library as native
from cyxla.xla.cpu.native.cache import DiskCache, digest
from cyxla.xla.service import background

KEY = digest("a key")


@pytest.fixture
def disk(tmp_path):
    return DiskCache(tmp_path / "cache")


@pytest.fixture
def damaged(disk):
    """Put an entry, let the test damage its file, and say whether it was noticed."""

    def run(damage):
        path = disk.put_module(KEY, {"x": 1}, b"image" * 100, [b"constant" * 10])
        data = damage(path.read_bytes())
        path.write_bytes(data)
        return disk.get(KEY) is None and not path.exists()

    return run


def test_library_goes_in_and_comes_out(disk):
    assert disk.get(KEY) is None
    path = disk.put(KEY, b"image")
    entry = disk.get(KEY)
    assert (entry.path, entry.image()) == (path, b"image")
    assert path.read_bytes().startswith(b"image")


@given(
    image=st.binary(max_size=300),
    constants=st.lists(st.binary(max_size=200), max_size=4),
    manifest=st.dictionaries(
        st.text(max_size=5), st.none() | st.integers() | st.lists(st.text(max_size=3)), max_size=3
    ),
)
def test_module_goes_in_and_comes_out(tmp_path_factory, image, constants, manifest):
    disk = DiskCache(tmp_path_factory.getbasetemp() / "modules")
    disk.put_module(KEY, manifest, image, constants)
    module = disk.get_module(KEY)
    assert module.manifest == manifest
    assert [bytes(c) for c in module.constants] == constants
    assert disk.get(KEY).image() == image


def test_constants_are_aligned_arrays_in_the_mapped_file(disk):
    x = np.arange(1000, dtype=np.float32)
    disk.put_module(KEY, {}, b"odd", [b"y", x.data])
    constant = disk.get_module(KEY).constants[1]
    array = np.frombuffer(constant, np.float32)
    assert array.ctypes.data % 64 == 0
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, x)
    disk.clear()
    np.testing.assert_array_equal(array, x)


def test_a_plain_library_is_no_module(disk):
    disk.put(KEY, b"image")
    assert disk.get_module(KEY) is None


DAMAGES = {
    "empty": lambda data: b"",
    "short": lambda data: data[:20],
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b"x",
    "first byte": lambda data: b"X" + data[1:],
    "in the manifest": lambda data: data.replace(b'"x"', b'"y"'),
    "in a constant": lambda data: data.replace(b"constantc", b"constantX", 1),
    "in the table": lambda data: data.replace(b"[[0, 500", b"[[0, 501"),
    "in the key": lambda data: data.replace(KEY.encode(), digest("another key").encode()),
    "magic": lambda data: data.replace(cache.MAGIC, b"x" * 8),
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"hello world " * 100,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_a_miss_and_is_removed(damaged, damage):
    assert damaged(damage)


def test_an_undamaged_entry_is_not(damaged):
    assert not damaged(lambda data: data)


def test_a_key_is_one_thing(disk):
    disk.put(digest("a", "b"), b"1")
    assert disk.get(digest("ab")) is None
    assert digest("a", b"b") == digest("a", "b") != digest("b", "a")


def test_files_are_private(disk):
    path = disk.put(KEY, b"x")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert disk.directory.stat().st_mode & 0o777 == 0o700


def test_no_other_files_stay(disk):
    disk.get_or_build(KEY, lambda: b"x")
    assert sorted(p.name for p in disk.directory.rglob("*") if p.is_file()) == sorted([f"{KEY}.so", "written"])


@pytest.mark.parametrize("mode, who", [(0o777, "everybody"), (0o707, "everybody"), (0o770, "its group")])
def test_a_directory_that_others_can_write_is_refused(mode, who, tmp_path, monkeypatch, caplog):
    tmp_path.chmod(mode)
    with pytest.raises(PermissionError, match=f"{who}.*chmod"):
        DiskCache(tmp_path)
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert cache.open_cache() is None
    assert "no disk cache" in caplog.text


@pytest.mark.parametrize("inside", [False, True])
def test_directories_are_private_under_any_umask(inside, tmp_path):
    before = os.umask(0)
    try:
        disk = DiskCache(tmp_path / "new" / "cache" if inside else tmp_path / "cache")
        assert disk.put(KEY, b"x")
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o022 for p in (disk.directory, disk.directory.parent, *disk.directory.rglob("*"))} == {
        0
    }


def exchange(one, other):
    middle = one.with_name("middle")
    one.rename(middle)
    other.rename(one)
    middle.rename(other)


def test_exchanged_entries_are_misses(disk):
    other = digest("another key")
    paths = disk.put(KEY, b"one"), disk.put(other, b"other")
    exchange(*paths)
    assert disk.get(KEY) is None
    assert disk.verify() == [paths[1]]
    assert disk.get(other) is None


@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_entries_that_others_can_write_are_misses(mode, disk):
    disk.put(KEY, b"x").chmod(mode)
    assert disk.get(KEY) is None


def test_entries_that_are_no_files_are_misses(disk, tmp_path):
    path = disk.put(KEY, b"x")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert disk.get(KEY) is None
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert disk.get(KEY) is None
    disk.put(KEY, b"x")
    assert disk.get(KEY).image() == b"x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_directory_put_in_the_place_of_ours_has_no_code_for_us(disk, monkeypatch, tmp_path):
    disk.put(KEY, b"ours")
    theirs = DiskCache(tmp_path / "theirs")
    for path in (theirs.put(KEY, b"theirs"), theirs.directory):
        os.chown(path, 12345, 12345)
    exchange(disk.directory, theirs.directory)
    assert disk.get(KEY) is None
    notes = disk.directory / "notes.json"
    notes.write_text('{"cc": ["rm"]}')
    monkeypatch.setattr(cache, "open_cache", lambda: disk)
    assert cache.FactFile("notes.json").get("cc") == ["rm"]
    os.chown(notes, 12345, 12345)
    assert cache.FactFile("notes.json").get("cc") is None


def test_leftovers_of_dead_writers_are_removed(disk):
    path = disk.put(KEY, b"x")
    left = [disk.directory / ".0123.tmp", path.with_name(".4567.tmp"), path.with_suffix(".lock")]
    new = [path.with_name(".89ab.tmp"), path.with_name("cdef.lock")]
    for p in (*left, *new):
        p.write_text("x")
    for p in left:
        os.utime(p, (0, time.time() - 2 * cache.STALE_AFTER))
    disk.sweep()
    assert [p.exists() for p in (*left, *new, path)] == [False, False, False, True, True, True]


def test_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path / "here"))
    assert cache.open_cache().directory == tmp_path / "here" / cache.FORMAT
    monkeypatch.setenv("CYXLA_CACHE", "0")
    assert cache.open_cache() is None
    monkeypatch.delenv("CYXLA_CACHE_DIR")
    assert cache.default_directory().name == "cyxla"
    for kept in (None, str(tmp_path), ""):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if kept is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", kept)
        assert cache.default_directory() == Path(platformdirs.user_cache_dir("cyxla"))


def test_trouble_costs_time_but_no_call(disk, caplog, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_replace", full)
    assert disk.put(KEY, b"x") is None
    assert disk.get_or_build(KEY, lambda: b"x") is None
    assert "cannot be written" in caplog.text


def test_a_directory_that_vanishes(disk):
    import shutil

    shutil.rmtree(disk.directory)
    assert disk.get(KEY) is None
    assert disk.get_or_build(KEY, lambda: b"x") is None or disk.get(KEY)
    assert disk.files() == []
    assert disk.info()["entries"] == 0


def test_info_verify_clear(disk):
    for k in range(3):
        disk.put(digest(str(k)), b"x" * 1000)
    info = disk.info()
    assert info["entries"] == 3
    assert info["bytes"] >= 3000
    assert disk.verify() == []
    victim = disk.path(digest("1"))
    victim.write_bytes(b"?")
    assert disk.verify() == [victim]
    assert disk.info()["entries"] == 2
    disk.clear()
    assert disk.info()["entries"] == 0
    assert disk.put(KEY, b"x")


def test_the_longest_unused_go_first(tmp_path):
    disk = DiskCache(tmp_path / "cache", limit=3500)
    now = time.time()
    for k in range(5):
        path = disk.put(digest(str(k)), b"x" * 1000)
        os.utime(path, (now, now - 10_000 + k))
    disk.get(digest("0"))  # long unused: the look is noted
    disk.sweep()
    assert [disk.get(digest(str(k))) is not None for k in range(5)] == [True, False, False, True, True]
    assert disk.info()["bytes"] <= 3500


def test_a_sweep_happens_now_and_then(tmp_path):
    disk = DiskCache(tmp_path / "cache", limit=5000)
    for k in range(2 * cache.SWEEP_EVERY):
        disk.put(digest(str(k)), b"x" * 1000)
    background.submit(lambda: None).wait()  # jobs run in order, so that the sweeps are done
    assert disk.info()["entries"] < cache.SWEEP_EVERY
    assert (disk.directory / "written").stat().st_size < cache.SWEEP_EVERY


def test_one_builder_at_a_time(disk):
    built = []

    def build():
        time.sleep(0.1)
        built.append(1)
        return b"x"

    threads = [threading.Thread(target=disk.get_or_build, args=(KEY, build)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]


def test_a_stuck_builder_does_not_block_others(disk, monkeypatch):
    monkeypatch.setattr(cache, "LOCK_TIMEOUT", 0.05)
    with disk.building(KEY):
        assert disk.get_or_build(KEY, lambda: b"x") is not None


def test_a_failing_builder_frees_the_lock(disk):
    with pytest.raises(ZeroDivisionError):
        disk.get_or_build(KEY, lambda: bytes(1 // 0))
    assert disk.get_or_build(KEY, lambda: b"x") is not None


BUILDER = """
import sys, time
from pathlib import Path
from cyxla.xla.cpu.native.cache import DiskCache

def build():
    time.sleep(0.3)
    print("built")
    return b"image"

path = DiskCache(Path(sys.argv[1])).get_or_build("k" * 40, build)
assert path.read_bytes().startswith(b"image")
"""


def test_two_processes_build_once(tmp_path):
    command = [sys.executable, "-c", BUILDER, str(tmp_path / "cache")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(said) == ["", "built\n"]


def test_edited_sources_change_the_fingerprint(monkeypatch, tmp_path):
    before = cache.code_fingerprint()
    assert before == cache.code_fingerprint.__wrapped__()
    (tmp_path / "cyxla").mkdir()
    monkeypatch.setattr(cache, "get_include", lambda: str(tmp_path))
    empty = cache.code_fingerprint.__wrapped__()
    header = tmp_path / "cyxla" / "math.h"
    header.write_text("/* one */")
    one = cache.code_fingerprint.__wrapped__()
    header.write_text("/* other */")
    assert len({before, empty, one, cache.code_fingerprint.__wrapped__()}) == 4


ANSWER = """
CYX_LIBRARY
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) { *(int *)b[0] = 42; return CYX_OK; }
"""


@pytest.mark.skipif(compiler_search.find() is None, reason="needs a C compiler")
class TestLibraries:
    def answer(self, library):
        return int(native.Program(library, "entry", [], [("i4", ())], 0)())

    def build(self, disk):
        return native.build_library([prelude.abi() + ANSWER], cache=disk)

    def test_loaded_from_the_file_itself(self, disk, monkeypatch):
        first = self.build(disk)
        monkeypatch.setattr(build, "Build", None)
        second = self.build(disk)
        assert first.path == second.path == str(disk.files()[0])
        assert self.answer(second) == 42

    def test_built_anew_when_damaged(self, disk):
        self.build(disk)
        disk.files()[0].write_bytes(b"\x7fELF?")
        assert self.answer(self.build(disk)) == 42
        assert disk.verify() == []

    def test_running_on_when_cleared(self, disk):
        library = self.build(disk)
        disk.clear()
        assert self.answer(library) == 42

    def test_without_a_place_for_it(self, disk, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cache, "_replace", full)
        with contextlib.suppress(OSError):
            assert self.answer(self.build(disk)) == 42

    def test_from_its_image_when_the_file_cannot_be_loaded(self, disk, monkeypatch):
        path = disk.put(KEY, compile_c(prelude.abi() + ANSWER))

        def refuse(name):
            if str(name) == str(path):
                raise OSError("mounted noexec")
            return native_library(name)

        native_library = native.Library
        refuse.from_bytes = native_library.from_bytes
        monkeypatch.setattr(native, "Library", refuse)
        assert self.answer(native.load(path)) == 42
