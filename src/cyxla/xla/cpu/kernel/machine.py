"""Machine that estimates and heuristics assume: sizes of caches, rates, overheads.

Other modules state their limits as multiples of these. They are constants rather than properties of the processor, so
that equal programs give equal code, and equal bits, on all machines of a kind; on another machine an estimate is off,
and nothing else. Limits that decide the order of a float sum are in `kernel.sum_order` and never follow these.

The times of an emitter's own inner loop stand in the emitter, as constants whose names end in ``_NS``; a comment tells
what was measured, or that the time is assumed. One that is wrong makes the estimate of that kernel wrong by its factor:
it gets too many tasks, each of which costs a fork-join, or too few for all threads.

The reference is one core of a Zen 4 EPYC at 3.7 GHz with AVX-512 (docs/benchmarks.md, docs/adr/0013-cost-model.md).
Figures marked SPR were measured on one core of a Sapphire Rapids Xeon, as least times of 25 and more calls.
"""

from __future__ import annotations

from typing import Final

#: L1 data cache of a core: 32 KiB on Zen 4, 48 KiB on SPR.
L1_BYTES: Final = 32 << 10
#: L2 cache of a core: 1 MiB on Zen 4, 2 MiB on SPR.
L2_BYTES: Final = 1 << 20
#: L3 cache that a core reaches: 32 MiB on Zen 4; beyond it, arrays come from main memory.
L3_BYTES: Final = 32 << 20
#: Cache line of all x86-64 processors, and of most others.
LINE_BYTES: Final = 64
#: Page of memory; the processors' TLBs hold some thousand of them.
PAGE_BYTES: Final = 4096
#: Widest vectors of any processor level, AVX-512.
VECTOR_BYTES: Final = 64

#: Multiply-adds of f32 in a ns: 105 to 119 at the peak (420 to 475 GFLOP/s on two cores); a dot reaches 80 on SPR.
F32_FMA_PER_NS: Final = 100.0
#: Time of a byte in the caches: an addition over 4,096 to 65,536 elements takes 0.8 to 1.0 of the estimate (SPR).
CACHED_NS_PER_BYTE: Final = 0.008
#: Time of a byte from main memory: 31 to 54 GB/s for two cores.
MEMORY_NS_PER_BYTE: Final = 0.03

#: Work of a task. A fork-join of threads that are awake costs 140 ns; waking a parked one costs 53 to 517 us.
TASK_NS: Final = 20_000.0
#: Work between two checks for cancellation: a check costs some ns, and a user notices from 100 ms on.
POLL_NS: Final = 1_000_000
#: Longest stretch of work without a check; five times `POLL_NS`, so that the thread of the caller still seems prompt.
UNINTERRUPTED_NS: Final = 5e6
#: Call of a kernel in the entry: 3.9 ns with a loop of 4 elements (SPR).
KERNEL_CALL_NS: Final = 5.0
#: Step of a recipe: 35 ns with a function over 16 elements (SPR).
RECIPE_STEP_NS: Final = 60.0
