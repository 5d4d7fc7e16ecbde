// Python module cyxla._native._rt of the C++ runtime; the launcher calls its functions directly, through the capsule.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")  // bindings are called seldom, and are a third smaller so
#endif
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "blocks.hpp"
#include "poll.hpp"
#include "runtime.h"
#include "threads.hpp"
#include "watched.hpp"

namespace py = pybind11;

namespace {

int discard(void *block, std::size_t bytes, std::size_t keep) { return cyxla::block_discard(block, bytes, keep); }

const cyx_runtime kRuntime = {
    sizeof(cyx_runtime), cyxla::kSmallPages, cyxla::block_acquire, cyxla::block_release,  discard,
    cyxla::parallel_for, cyxla::poll,          cyxla::on_main_thread, cyxla::run_watched,
};

std::map<std::string, std::uint64_t> pool_stats() {
  const cyxla::BlockStats stats = cyxla::block_stats();
  return {
      {"in_use_bytes", stats.in_use_bytes},
      {"in_use_blocks", stats.in_use_blocks},
      {"held_bytes", stats.held_bytes},
      {"held_blocks", stats.held_blocks},
      {"hits", stats.hits},
      {"misses", stats.misses},
      {"limit", cyxla::block_limit()},
  };
}

// Return the highest x86-64 psABI level of which processor and system support all features; "" on other processors.
std::string detected_isa_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();  // these checks include the system's support for the registers
  unsigned a, b, c = 0, d, ext_c = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  __get_cpuid(0x80000001, &a, &b, &ext_c, &d);
  const bool cx16 = c & (1u << 13), movbe = c & (1u << 22), f16c = c & (1u << 29);
  const bool lahf = ext_c & 1u, lzcnt = ext_c & (1u << 5);
  const bool v2 = cx16 && lahf && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("ssse3") &&
                  __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2");
  const bool v3 = v2 && movbe && f16c && lzcnt && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64-v1";
#else
  return "";
#endif
}

// Detected once: cpuid takes some 10 us under a hypervisor that intercepts it, and every compilation calls this.
std::string isa_level() {
  static const std::string level = detected_isa_level();
  return level;
}

}  // namespace

PYBIND11_MODULE(_rt, m) {
  m.doc() = "Threads, recycled memory and processor features.";
  cyxla::blocks_init();
  cyxla::threads_init();
  cyxla::poll_init();
  cyxla::watched_init();
  m.attr("runtime") = py::capsule(&kRuntime, CYX_RUNTIME_CAPSULE);
  m.def("threads", &cyxla::thread_count, "Return the number of threads that a program may use, the caller's included.");
  m.def("set_threads", &cyxla::set_thread_count, py::arg("n"), py::call_guard<py::gil_scoped_release>(),
        "Set the number of threads of programs, after waiting for a running parallel region.");
  m.def("started_workers", &cyxla::started_workers, "Return the number of worker threads that exist.");
  m.def("count_abandoned", &cyxla::count_abandoned, py::arg("runs"),
        "Add to the number of abandoned runs, for those of Python.");
  m.def("abandoned_runs", &cyxla::abandoned_runs, "Return the number of interrupted programs that have not ended.");
  m.def("pool_stats", &pool_stats, "Return bytes and blocks in use and free, hits and misses, and the limit.");
  m.def("pool_trim", &cyxla::block_trim, py::arg("keep") = 0,
        "Return free memory to the system until at most `keep` bytes are free.");
  m.def("set_pool_limit", &cyxla::set_block_limit, py::arg("bytes"), "Set the limit of free memory that is kept.");
  m.def("block_capacity", &cyxla::block_capacity, py::arg("bytes"), "Return the size class of a request in bytes.");
  m.def("isa_level", &isa_level, "The processor's x86-64 level, such as 'x86-64-v3'; '' on other processors.");
}
