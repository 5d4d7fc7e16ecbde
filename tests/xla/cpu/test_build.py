"""Objects from the cache beside a compiler that waits for its text."""

from cyxla.xla.cpu import toolchain
from cyxla.xla.cpu.cache import DiskCache
from cyxla.xla.cpu.toolchain import Unit


def test_a_waiting_compiler_leaves_a_cached_object_alone(tmp_path):
    tools, cache = toolchain.require(), DiskCache(tmp_path)
    first, *others = [Unit(f"int f{k}(void) {{ return {k}; }}\n") for k in range(4)]
    assert tools.compile([first, others[0]], cache)
    for other in others[1:]:
        with tools.build() as build:
            build.prepare()
            jobs = list(build._jobs)
            image = build.image([first, other], cache)
        assert b"f0\0" in image
        assert all(process.returncode is not None for job in jobs for process in job.processes)
