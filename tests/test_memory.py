"""Arrays that no memory is left for are refused before the system ends the process for filling them."""

import numpy as np
import pytest

import cyxla
from cyxla import memory

GIB = 2**30
SIZE = (2**40 - 16) // 8  # numbers: a tebibyte, the most that an array may have
MEMINFO = "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 8388608 kB\nSwapFree: 2097152 kB\n"
GROUPS = {
    # files, free GiB
    "none": ({}, None),
    "machine": ({"proc/meminfo": MEMINFO}, 10),
    "machine without swap": ({"proc/meminfo": "MemAvailable: 8388608 kB\n"}, 8),
    "group": (
        {
            "proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/memory.current": f"{3 * GIB}\n",
            "sys/fs/cgroup/memory.stat": f"anon 17\ninactive_file {GIB}\nactive_file {GIB}\n",
            "sys/fs/cgroup/memory.swap.max": "0\n", "sys/fs/cgroup/memory.swap.current": "0\n",
        }, 3,
    ),
    "group that may swap": (
        {
            "proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/memory.current": f"{3 * GIB}\n", "sys/fs/cgroup/memory.swap.max": "max\n",
        }, 3,
    ),
    "group without a limit": (
        {
            "proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n",
            "sys/fs/cgroup/a/memory.current": "5\n",
        }, 10,
    ),
    "outer group": (
        {
            "proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.current": f"{GIB}\n", "sys/fs/cgroup/a/memory.max": f"{2 * GIB}\n",
            "sys/fs/cgroup/a/memory.current": f"{GIB}\n",
        }, 1,
    ),
    "group beyond its limit": (
        {
            "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{GIB}\n",
            "sys/fs/cgroup/memory.current": f"{2 * GIB}\n",
        }, 0,
    ),
    "old group": (
        {
            "proc/meminfo": "MemAvailable: 8388608 kB\n", "proc/self/cgroup": "5:cpu,memory:/x\n1:name=systemd:/x\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{6 * GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{5 * GIB}\n",
            "sys/fs/cgroup/memory/memory.stat": f"inactive_file 5\ntotal_inactive_file {GIB}\n",
        }, 2,
    ),
    "old group without a limit": (
        {
            "proc/meminfo": "MemAvailable: 8388608 kB\n", "proc/self/cgroup": "5:memory:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
        }, 8,
    ),
    "nonsense": ({"proc/meminfo": "MemAvailable: much kB\n\n", "proc/self/cgroup": "0::/gone\n"}, None),
}  # fmt: skip


@pytest.mark.parametrize("files, want", GROUPS.values(), ids=GROUPS)
def test_free(files, want, tmp_path):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert memory.free(tmp_path) == (None if want is None else want * GIB)


def test_this_machine_has_some_memory():
    found = memory.free()
    assert found is not None
    assert 0 < found < 2**46
    memory.require(memory.LARGE - 1)
    with pytest.raises(cyxla.errors.ResourceExhaustedError, match=r"cannot allocate 70368744177664 bytes"):
        memory.require(2**46)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.broadcast_to(x, (SIZE,)),
        lambda x: np.cumsum(np.broadcast_to(x, (SIZE,))),
        lambda x: (np.broadcast_to(x, (SIZE // 2,)), np.broadcast_to(-x, (SIZE // 2,))),
        lambda x: np.sort(np.cumsum(np.broadcast_to(x, (SIZE,))))[:1],
    ],
    ids=["result", "computed", "several", "arena"],
)
def test_programs_without_memory(function, backend):
    call = cyxla.jit(function, platform=backend)
    with pytest.raises(MemoryError, match=r"cannot allocate \d{12,13} bytes .*GiB are available"):
        call(1.0)


def test_fused_values_need_no_memory(backend):
    call = cyxla.jit(lambda x: np.broadcast_to(x, (SIZE,))[5:8], platform=backend)
    np.testing.assert_array_equal(call(2.0), [2.0, 2.0, 2.0])
