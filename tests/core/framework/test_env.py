"""The environment of kernels: files, clock and threads."""

import errno
import os
import threading
import time

import numpy as np
import pytest
from support.graphs.probes import Registries, context
from support.graphs.running import Extension

from cyxla import raw_ops
from cyxla.core.framework import Env, OpKernel, StepContext, kernel
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.environment.env import io_error
from cyxla.core.framework.environment.file_access import NO_FILES, FileAccess
from cyxla.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

ENV = Env()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """The current folder, with the file a, and with d/b.txt, d/.c.txt and d/e/f.txt."""
    (tmp_path / "d" / "e").mkdir(parents=True)
    for name in ("a", "d/b.txt", "d/.c.txt", "d/e/f.txt"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("number, cls", [
    (errno.ENOENT,       NotFoundError),
    (errno.EEXIST,       AlreadyExistsError),
    (errno.EACCES,       PermissionDeniedError),
    (errno.EROFS,        PermissionDeniedError),
    (errno.EISDIR,       FailedPreconditionError),
    (errno.ENOTEMPTY,    FailedPreconditionError),
    (errno.ENAMETOOLONG, InvalidArgumentError),
    (errno.ENOSPC,       ResourceExhaustedError),
    (errno.EMFILE,       ResourceExhaustedError),
    (errno.EFBIG,        OutOfRangeError),
    (errno.EXDEV,        UnimplementedError),
    (errno.EAGAIN,       UnavailableError),
    (errno.ESTALE,       AbortedError),
    (errno.ECANCELED,    CancelledError),
    (errno.ETIMEDOUT,    DeadlineExceededError),
    (errno.EIO,          UnknownError),
    (errno.ELOOP,        UnknownError),
])  # fmt: skip
def test_error_numbers_have_the_codes_of_tensorflow(number, cls):
    error = io_error("some/file", OSError(number, os.strerror(number)))
    assert type(error) is cls
    assert error.message == f"some/file; {os.strerror(number)}"


FAILURES = [
    # call, code, message
    (lambda: ENV.read_file("gone"),                      "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.read_file("d"),                         "FAILED_PRECONDITION", "d; Is a directory"),
    (lambda: ENV.read_file("a/b"),                       "FAILED_PRECONDITION", "a/b; Not a directory"),
    (lambda: ENV.read_file("x" * 300),                   "INVALID_ARGUMENT",    "x" * 300 + "; File name too long"),
    (lambda: ENV.read_file("a", -1),                     "INVALID_ARGUMENT",    "a; Invalid argument"),
    (lambda: ENV.read_file("s3://bucket/a"),             "UNIMPLEMENTED",
     "File system scheme 's3' not implemented (file: 's3://bucket/a')"),
    (lambda: ENV.write_file("gone/a", b""),              "NOT_FOUND",           "gone/a; No such file or directory"),
    (lambda: ENV.write_file("d", b""),                   "FAILED_PRECONDITION", "d; Is a directory"),
    (lambda: ENV.new_appendable_file("gone/a"),          "NOT_FOUND",           "gone/a; No such file or directory"),
    (lambda: ENV.new_read_only_memory_region("gone"),    "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.get_file_size("gone"),                  "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.get_children("gone"),                   "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.get_children("a"),                      "FAILED_PRECONDITION", "a; Not a directory"),
    (lambda: ENV.create_dir("d"),                        "ALREADY_EXISTS",      "d; File exists"),
    (lambda: ENV.create_dir("gone/d"),                   "NOT_FOUND",           "gone/d; No such file or directory"),
    (lambda: ENV.recursively_create_dir("a"),            "FAILED_PRECONDITION", "a is not a directory"),
    (lambda: ENV.recursively_create_dir("a/b"),          "FAILED_PRECONDITION", "a/b; Not a directory"),
    (lambda: ENV.delete_file("gone"),                    "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.delete_file("d"),                       "FAILED_PRECONDITION", "d; Is a directory"),
    (lambda: ENV.delete_dir("d"),                        "FAILED_PRECONDITION", "d; Directory not empty"),
    (lambda: ENV.delete_dir("a"),                        "FAILED_PRECONDITION", "a; Not a directory"),
    (lambda: ENV.delete_recursively("gone"),             "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.rename_file("gone", "b"),               "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.copy_file("gone", "b"),                 "NOT_FOUND",           "gone; No such file or directory"),
    (lambda: ENV.copy_file("a", "d"),                    "FAILED_PRECONDITION", "d; Is a directory"),
]  # fmt: skip


@pytest.mark.parametrize("call, code, message", FAILURES)
def test_failures(tree, call, code, message):
    before = sorted(tree.rglob("*"))
    with pytest.raises(OpError) as caught:
        call()
    assert (caught.value.code, caught.value.message) == (code, message)
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("path", ["a", "./a", "d/../a", "gone/../a", "file://{}/a", "file://host{}/a"])
def test_spellings_of_a_path(tree, path):
    """As in TensorFlow, ``..`` removes the name before it, be it there or not."""
    assert ENV.read_file(path.format(tree)) == b"a"


def test_what_is_there(tree):
    assert [ENV.file_exists(p) for p in ("a", "d", "gone", "")] == [True, True, False, False]
    assert [ENV.is_directory(p) for p in ("a", "d", "gone")] == [False, True, False]
    assert ENV.get_file_size("d/b.txt") == 7
    assert ENV.get_children("d") == [".c.txt", "b.txt", "e"]


@pytest.mark.parametrize("pattern, found", [
    ("d/*.txt", ["d/.c.txt", "d/b.txt"]),  # a dot at the start is no exception
    ("d/?.txt", ["d/b.txt"]), ("d/[a-c].txt", ["d/b.txt"]), ("*/e/*", ["d/e/f.txt"]), ("d/**/f.txt", ["d/e/f.txt"]),
    ("**.txt", []), ("d", ["d"]), ("gone/*", []),
])  # fmt: skip
def test_patterns(tree, pattern, found):
    assert ENV.get_matching_paths(pattern) == found


def test_files_are_read_and_written(tree):
    ENV.write_file("new", b"0123456789")
    assert ENV.read_file("new") == b"0123456789"
    assert [ENV.read_file("new", *part) for part in ((3,), (3, 2), (8, 9), (20, 1))] == [b"3456789", b"34", b"89", b""]
    with ENV.new_appendable_file("new") as file:
        file.append(b"ab")
        file.flush()
        assert (ENV.get_file_size("new"), file.tell()) == (12, 12)
    with pytest.raises(FailedPreconditionError, match="new; Bad file descriptor"):
        file.append(b"c")
    with ENV.new_writable_file("new") as file:
        file.append(b"short")
    region = ENV.new_read_only_memory_region("new")
    assert (region.tobytes(), region.flags.writeable) == (b"short", False)
    ENV.write_file("new", b"")
    assert ENV.new_read_only_memory_region("new").shape == (0,)


def test_files_are_moved_and_deleted(tree):
    os.chmod("a", 0o600)
    ENV.copy_file("a", "copy")
    assert (ENV.read_file("copy"), os.stat("copy").st_mode & 0o777) == (b"a", 0o600)
    ENV.rename_file("copy", "d/b.txt")  # which is replaced
    assert (ENV.read_file("d/b.txt"), ENV.file_exists("copy")) == (b"a", False)
    ENV.recursively_create_dir("x/y/z")
    ENV.recursively_create_dir("x/y/z")
    ENV.create_dir("x/w")
    ENV.delete_dir("x/w")
    ENV.delete_file("d/b.txt")
    ENV.delete_recursively("x")
    assert ENV.get_children(".") == ["a", "d"]
    ENV.delete_recursively("a")
    assert ENV.get_children(".") == ["d"]


def test_links_are_deleted_and_not_followed(tree):
    os.symlink("../a", "d/link")
    os.symlink("d", "folder")
    ENV.delete_recursively("folder")
    assert ENV.get_children("d") == [".c.txt", "b.txt", "e", "link"]
    (tree / "x").mkdir()
    os.symlink("../d", "x/folder")
    ENV.delete_recursively("x")
    ENV.delete_file("d/link")
    assert ENV.get_children(".") == ["a", "d"]
    assert ENV.get_children("d") == [".c.txt", "b.txt", "e"]


@pytest.fixture
def plain_user():
    """Permissions do not bind root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


@pytest.fixture
def locked(tree):
    """A folder from which no file can be deleted."""
    for path, mode in (("d", 0o777), ("d/e", 0o555), (".", 0o777)):
        os.chmod(path, mode)
    yield
    os.chmod("d/e", 0o777)


@pytest.mark.usefixtures("locked", "plain_user")
def test_what_can_be_deleted_is_deleted():
    with pytest.raises(PermissionDeniedError, match=r"d/e/f\.txt; Permission denied"):
        ENV.delete_recursively("d")
    assert ENV.get_children("d") == ["e"]


# Limits

OUTSIDE = [
    lambda env, path: env.file_exists(path), lambda env, path: env.is_directory(path),
    lambda env, path: env.get_file_size(path), lambda env, path: env.read_file(path),
    lambda env, path: env.write_file(path, b""), lambda env, path: env.new_writable_file(path),
    lambda env, path: env.new_appendable_file(path), lambda env, path: env.new_read_only_memory_region(path),
    lambda env, path: env.get_children(path), lambda env, path: env.get_matching_paths(f"{path}/*"),
    lambda env, path: env.create_dir(path), lambda env, path: env.recursively_create_dir(path),
    lambda env, path: env.delete_file(path), lambda env, path: env.delete_dir(path),
    lambda env, path: env.delete_recursively(path), lambda env, path: env.rename_file(path, "d/new"),
    lambda env, path: env.rename_file("d/b.txt", path), lambda env, path: env.copy_file(path, "d/new"),
    lambda env, path: env.copy_file("d/b.txt", path), lambda env, path: env.path(path),
]  # fmt: skip


@pytest.mark.parametrize("call", OUTSIDE)
@pytest.mark.parametrize("path", ["a", "d/../a", "d/link/a", "d/..", "new", "file://host{}/a"])
def test_a_limited_graph_reaches_nothing_outside_of_its_folder(tree, call, path):
    os.symlink("..", "d/link")
    before = {p: p.read_bytes() if p.is_file() else None for p in tree.rglob("*")}
    for access in (FileAccess.inside("d"), NO_FILES):
        with pytest.raises(PermissionDeniedError, match="Reader may not access the file"):
            call(Env(access, "Reader"), path.format(tree))
    assert {p: p.read_bytes() if p.is_file() else None for p in tree.rglob("*")} == before


def test_a_limited_graph_uses_its_folder(tree):
    os.symlink("../a", "d/link")
    env = Env(FileAccess.inside("d"), "Reader")
    assert env.read_file("d/b.txt") == b"d/b.txt"
    env.recursively_create_dir("d/x/y")
    env.write_file("d/x/y/z", b"")
    env.rename_file("d/x/y/z", "d/x/z")
    assert [os.path.basename(p) for p in env.get_matching_paths("d/x/*")] == ["y", "z"]
    env.delete_recursively("d/x")
    with pytest.raises(PermissionDeniedError):
        env.read_file("d/link")
    env.delete_file("d/link")  # itself, which is inside
    assert env.get_children("d") == [".c.txt", "b.txt", "e"]
    assert ENV.read_file("a") == b"a"


@pytest.mark.parametrize("access", [FileAccess(), FileAccess(True, "/")])
@pytest.mark.parametrize("call", OUTSIDE)
def test_zero_bytes(tree, call, access):
    with pytest.raises(InvalidArgumentError, match="contains a zero byte"):
        call(Env(access), "a\0b")


# Clock and threads


def test_the_clock():
    before, env = time.time_ns(), ENV
    nanos, micros, seconds = env.now_nanos(), env.now_micros(), env.now_seconds()
    assert before <= nanos <= time.time_ns()
    assert (micros - before // 10**3 < 10**7, seconds - before // 10**9 < 10) == (True, True)
    began = time.monotonic()
    env.sleep_for_microseconds(20_000)
    env.sleep_for_microseconds(-1)
    assert time.monotonic() - began >= 0.02


def test_threads():
    seen, done = [], threading.Event()
    thread = ENV.start_thread("worker", lambda: seen.append(threading.current_thread().name))
    thread.join(30)
    assert (seen, thread.daemon) == (["worker"], False)
    ENV.sched_closure(done.set)
    assert done.wait(30)
    began, later = time.monotonic(), threading.Event()
    ENV.sched_closure_after(20_000, later.set)
    assert later.wait(30)
    assert time.monotonic() - began >= 0.02


def test_the_floating_point_state_of_threads():
    """Kernels run without warnings of NumPy, so their threads do, too."""
    results = []
    for start in (lambda f: ENV.start_thread("t", f), ENV.sched_closure, lambda f: ENV.sched_closure_after(0, f)):
        done = threading.Event()
        start(lambda done=done: (results.append(np.geterr()["divide"]), done.set()))
        assert done.wait(30)
    assert results == ["ignore"] * 3


# In kernels


class Words(OpKernel):
    """Reads the words of a file when it is constructed."""

    def __init__(self, construction):
        super().__init__(construction)
        self.words = construction.env.read_file(construction.get_attr("file")).split()
        self.made_at = construction.env.now_micros()

    def compute(self, ctx):
        """Return the number of words."""
        assert ctx.env.now_micros() >= self.made_at
        ctx.set_output(0, np.int32(len(self.words)))


@pytest.fixture
def extension():
    made = Extension()
    made.op("Words", "-> n: int32", "file: string", stateful=True)
    made.kernel("Words")(Words)
    return made


def graph_of(extension, path):
    graph = extension.graph()
    with graph.as_default():
        apply_op("Words", file=str(path), name="n")
    return graph


def test_a_constructor_reads_a_file(extension, tmp_path):
    (tmp_path / "words").write_text("three small words")
    graph = graph_of(extension, tmp_path / "words")
    assert extension.session(graph).run("n:0") == 3
    with pytest.raises(PermissionDeniedError, match="Words may not access the file") as caught:
        extension.session(graph, allow_file_access=False).run("n:0")
    assert caught.value.node == "n"


def test_the_error_of_a_file_is_that_of_the_step(extension, tmp_path):
    with pytest.raises(NotFoundError, match="missing; No such file or directory") as caught:
        extension.session(graph_of(extension, tmp_path / "missing")).run("n:0")
    assert (caught.value.node, caught.value.op) == ("n", "Words")


def test_the_environment_of_a_step(tmp_path):
    world = Registries()
    world.op("Probe", "-> y: float")
    kernel("Probe", registry=world.kernels)(OpKernel)
    made = world.make("Probe")
    assert context(made).env == Env(user="Probe")
    assert context(made, step=StepContext(file_access=NO_FILES)).env == Env(NO_FILES, "Probe")


@pytest.mark.parametrize("path, code", [
    ("missing", "NOT_FOUND"), ("d", "FAILED_PRECONDITION"), ("a/b", "FAILED_PRECONDITION"),
    (300 * "x", "INVALID_ARGUMENT"), ("gs://a/b", "UNIMPLEMENTED"),
])  # fmt: skip
def test_ops_have_the_codes_of_tensorflow(tree, path, code):
    with pytest.raises(OpError) as caught:
        raw_ops.ReadFile(filename=path.encode())
    assert caught.value.code == code


def test_the_time_of_a_step_is_that_of_the_clock():
    assert abs(float(raw_ops.Timestamp()) - time.time()) < 60
