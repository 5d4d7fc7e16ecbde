#include "blocks.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <new>

// Functions of the address sanitizer, if the process has it.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void *, std::size_t);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *, std::size_t);
}

namespace cyxla {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t kAlign = 64;
constexpr std::size_t kPage = 4 * KiB, kHugePage = 2 * MiB;
constexpr std::size_t kMinHugeBytes = 1 * MiB;  // smaller blocks would waste too much of a 2 MiB page
constexpr std::size_t kMaxBytes = std::size_t{1} << 46;
constexpr int kClassesPerDoubling = 8;  // size classes in each doubling, so that at most 1/8 is wasted
constexpr int kClasses = 64 * kClassesPerDoubling;  // of huge pages, and as many of small ones

struct SizeClass {
  int index;
  std::size_t bytes;
  bool has_small_pages() const { return index >= kClasses; }
};

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Classes of one doubling [2^k, 2^(k+1)) are 2^k/8 apart, or the alignment if that is more; large ones are huge pages.
SizeClass size_class(std::size_t request) {
  const std::size_t bytes = std::max(request & ~kSmallPages, kAlign);
  const std::size_t step = (std::size_t{1} << (63 - __builtin_clzll(bytes))) / kClassesPerDoubling;
  std::size_t rounded = round_up(bytes, step < kAlign ? kAlign : step);
  if (rounded >= kMinHugeBytes) rounded = round_up(rounded, kHugePage);
  const int top = 63 - __builtin_clzll(rounded);
  const std::size_t base = std::size_t{1} << top;
  const int index = top * kClassesPerDoubling + static_cast<int>((rounded - base) * kClassesPerDoubling / base);
  return {request & kSmallPages && rounded >= kMinHugeBytes ? kClasses + index : index, rounded};
}

void *map_aligned(std::size_t bytes, bool has_small_pages) {
  // Map one huge page more, then unmap both ends, so that the rest is aligned.
  char *raw = static_cast<char *>(
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (raw == MAP_FAILED) return nullptr;
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(raw) % kHugePage) % kHugePage;
  if (head) munmap(raw, head);
  if (head < kHugePage) munmap(raw + head + bytes, kHugePage - head);
#ifdef MADV_HUGEPAGE
  madvise(raw + head, bytes, has_small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
#endif
  return raw + head;
}

// Write to each page of a new block: masked vector loads from pages that were never written take 100 ns each, even if
// the mask is empty. They occur at the end of arrays whose size is known at run time.
void *touch(void *block, std::size_t bytes) {
  for (std::size_t at = 0; block && at < bytes; at += kPage) static_cast<volatile char *>(block)[at] = 0;
  return block;
}

void *system_acquire(const SizeClass &size) {
  if (size.bytes >= kMinHugeBytes) return map_aligned(size.bytes, size.has_small_pages());
  return touch(std::aligned_alloc(kAlign, size.bytes), size.bytes);
}

void system_release(void *block, std::size_t bytes) {
  if (bytes >= kMinHugeBytes)
    munmap(block, bytes);
  else
    std::free(block);
}

// Poison the bytes between the requested size and the capacity for the sanitizer; none if the sizes are equal.
void poison_tail(void *block, std::size_t bytes, std::size_t capacity) {
  if (!__asan_poison_memory_region || !block) return;
  __asan_unpoison_memory_region(block, capacity);
  __asan_poison_memory_region(static_cast<char *>(block) + bytes, capacity - bytes);
}

struct FreeBlock {
  void *block;
  std::uint64_t stamp;  // time of its release: the oldest is freed first
};

struct FreeList {
  std::deque<FreeBlock> free;  // back: most recently used
  std::size_t bytes = 0;
};

struct Blocks {
  std::mutex mutex;
  std::array<FreeList, 2 * kClasses> free_lists;
  std::size_t limit = 512 * MiB;
  std::uint64_t clock = 0;
  BlockStats stats;

  void *pop(const SizeClass &size) {
    FreeList &list = free_lists[size.index];
    if (list.free.empty()) return nullptr;
    void *block = list.free.back().block;
    list.free.pop_back();
    stats.held_bytes -= size.bytes;
    --stats.held_blocks;
    ++stats.hits;
    return block;
  }

  void free_oldest() {
    FreeList *oldest = nullptr;
    for (FreeList &list : free_lists)
      if (!list.free.empty() && (!oldest || list.free.front().stamp < oldest->free.front().stamp)) oldest = &list;
    system_release(oldest->free.front().block, oldest->bytes);
    oldest->free.pop_front();
    stats.held_bytes -= oldest->bytes;
    --stats.held_blocks;
  }

  void shrink_to(std::size_t keep) {
    while (stats.held_bytes > keep) free_oldest();
  }
};

// Never destroyed: arrays may be freed after the last static destructor has run.
Blocks &blocks() {
  static Blocks *const instance = new Blocks;
  return *instance;
}

}  // namespace

void *block_acquire(std::size_t bytes) noexcept {
  if ((bytes & ~kSmallPages) > kMaxBytes) return nullptr;
  const SizeClass size = size_class(bytes);
  Blocks &pool = blocks();
  std::lock_guard<std::mutex> lock(pool.mutex);
  void *block = pool.pop(size);
  if (!block) {
    block = system_acquire(size);
    if (!block && pool.stats.held_blocks) {
      pool.shrink_to(0);
      block = system_acquire(size);
    }
    if (!block) return nullptr;
    ++pool.stats.misses;
  }
  pool.stats.in_use_bytes += size.bytes;
  ++pool.stats.in_use_blocks;
  poison_tail(block, bytes & ~kSmallPages, size.bytes);
  return block;
}

void block_release(void *block, std::size_t bytes) noexcept {
  if (!block) return;
  const SizeClass size = size_class(bytes);
  poison_tail(block, size.bytes, size.bytes);
  Blocks &pool = blocks();
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.stats.in_use_bytes -= size.bytes;
  --pool.stats.in_use_blocks;
  if (size.bytes > pool.limit) {
    system_release(block, size.bytes);
    return;
  }
  pool.shrink_to(pool.limit - size.bytes);
  FreeList &list = pool.free_lists[size.index];
  try {
    list.free.push_back({block, pool.clock++});
  } catch (const std::bad_alloc &) {
    system_release(block, size.bytes);
    return;
  }
  list.bytes = size.bytes;
  pool.stats.held_bytes += size.bytes;
  ++pool.stats.held_blocks;
}

bool block_discard(void *block, std::size_t bytes, std::size_t keep) noexcept {
  const std::size_t capacity = size_class(bytes).bytes, kept = round_up(keep, kHugePage);
  if (capacity < kMinHugeBytes || kept - keep > keep) return false;
  if (capacity <= 2 * keep + kHugePage) return true;
  return madvise(static_cast<char *>(block) + kept, capacity - kept, MADV_DONTNEED) == 0;
}

void block_trim(std::size_t keep) noexcept {
  std::lock_guard<std::mutex> lock(blocks().mutex);
  blocks().shrink_to(keep);
}

std::size_t block_limit() noexcept {
  std::lock_guard<std::mutex> lock(blocks().mutex);
  return blocks().limit;
}

void set_block_limit(std::size_t bytes) noexcept {
  std::lock_guard<std::mutex> lock(blocks().mutex);
  blocks().limit = bytes;
  blocks().shrink_to(bytes);
}

BlockStats block_stats() noexcept {
  std::lock_guard<std::mutex> lock(blocks().mutex);
  return blocks().stats;
}

std::size_t block_capacity(std::size_t bytes) noexcept { return size_class(bytes).bytes; }

void blocks_init() {
  blocks();
  // The forking thread holds the lock across fork, so that no thread missing in the child can lock it there.
  pthread_atfork([] { blocks().mutex.lock(); }, [] { blocks().mutex.unlock(); }, [] { blocks().mutex.unlock(); });
}

}  // namespace cyxla
