#include "blocks.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <new>

// Of the address sanitizer, where the process has it.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void *, std::size_t);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *, std::size_t);
}

namespace cyxla {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t kAlign = 64;
constexpr std::size_t kHugePage = 2 * MiB;
constexpr std::size_t kHugeFrom = 1 * MiB;  // below, a 2 MiB page would waste more than it saves
constexpr std::size_t kLargest = std::size_t{1} << 46;
constexpr int kSteps = 8;  // size classes in each doubling: at most 1/8 is wasted
constexpr int kClasses = 64 * kSteps;

struct SizeClass {
  int index;
  std::size_t bytes;
};

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Classes of one doubling [2^k, 2^(k+1)) are 2^k/8 apart; small ones at least the alignment, large ones whole huge pages.
SizeClass size_class(std::size_t bytes) {
  if (bytes < kAlign) bytes = kAlign;
  const std::size_t step = (std::size_t{1} << (63 - __builtin_clzll(bytes))) / kSteps;
  std::size_t rounded = round_up(bytes, step < kAlign ? kAlign : step);
  if (rounded >= kHugeFrom) rounded = round_up(rounded, kHugePage);
  const int top = 63 - __builtin_clzll(rounded);
  const std::size_t base = std::size_t{1} << top;
  return {top * kSteps + static_cast<int>((rounded - base) * kSteps / base), rounded};
}

void *map_huge(std::size_t bytes) {
  // Ask for one huge page more, then cut both ends so that what stays is aligned.
  char *raw = static_cast<char *>(
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (raw == MAP_FAILED) return nullptr;
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(raw) % kHugePage) % kHugePage;
  if (head) munmap(raw, head);
  if (head < kHugePage) munmap(raw + head + bytes, kHugePage - head);
#ifdef MADV_HUGEPAGE
  madvise(raw + head, bytes, MADV_HUGEPAGE);
#endif
  return raw + head;
}

void *system_acquire(std::size_t bytes) {
  return bytes >= kHugeFrom ? map_huge(bytes) : std::aligned_alloc(kAlign, bytes);
}

void system_release(void *block, std::size_t bytes) {
  if (bytes >= kHugeFrom)
    munmap(block, bytes);
  else
    std::free(block);
}

// Let the sanitizer see the end of what was asked for, and none in what was given back.
void guard(void *block, std::size_t bytes, std::size_t whole) {
  if (!__asan_poison_memory_region || !block) return;
  __asan_unpoison_memory_region(block, whole);
  __asan_poison_memory_region(static_cast<char *>(block) + bytes, whole - bytes);
}

struct Free {
  void *block;
  std::uint64_t stamp;  // when it was given back: the oldest goes first
};

struct Shelf {
  std::deque<Free> free;  // back: most recently used
  std::size_t bytes = 0;
};

struct Blocks {
  std::mutex mutex;
  std::array<Shelf, kClasses> shelves;
  std::size_t limit = 512 * MiB;
  std::uint64_t clock = 0;
  BlockStats stats;

  void *take(const SizeClass &size) {
    Shelf &shelf = shelves[size.index];
    if (shelf.free.empty()) return nullptr;
    void *block = shelf.free.back().block;
    shelf.free.pop_back();
    stats.held_bytes -= size.bytes;
    --stats.held_blocks;
    ++stats.hits;
    return block;
  }

  void drop_oldest() {
    Shelf *oldest = nullptr;
    for (Shelf &shelf : shelves)
      if (!shelf.free.empty() && (!oldest || shelf.free.front().stamp < oldest->free.front().stamp)) oldest = &shelf;
    system_release(oldest->free.front().block, oldest->bytes);
    oldest->free.pop_front();
    stats.held_bytes -= oldest->bytes;
    --stats.held_blocks;
  }

  void shrink_to(std::size_t keep) {
    while (stats.held_bytes > keep) drop_oldest();
  }
};

// Never destroyed: arrays may die after the last static destructor has run.
Blocks &blocks() {
  static Blocks *const instance = new Blocks;
  return *instance;
}

}  // namespace

void *block_acquire(std::size_t bytes) noexcept {
  if (bytes > kLargest) return nullptr;
  const SizeClass size = size_class(bytes);
  Blocks &all = blocks();
  std::lock_guard<std::mutex> hold(all.mutex);
  void *block = all.take(size);
  if (!block) {
    block = system_acquire(size.bytes);
    if (!block && all.stats.held_blocks) {
      all.shrink_to(0);
      block = system_acquire(size.bytes);
    }
    if (!block) return nullptr;
    ++all.stats.misses;
  }
  all.stats.in_use_bytes += size.bytes;
  ++all.stats.in_use_blocks;
  guard(block, bytes, size.bytes);
  return block;
}

void block_release(void *block, std::size_t bytes) noexcept {
  if (!block) return;
  const SizeClass size = size_class(bytes);
  guard(block, size.bytes, size.bytes);
  Blocks &all = blocks();
  std::lock_guard<std::mutex> hold(all.mutex);
  all.stats.in_use_bytes -= size.bytes;
  --all.stats.in_use_blocks;
  if (size.bytes > all.limit) {
    system_release(block, size.bytes);
    return;
  }
  all.shrink_to(all.limit - size.bytes);
  Shelf &shelf = all.shelves[size.index];
  try {
    shelf.free.push_back({block, all.clock++});
  } catch (const std::bad_alloc &) {
    system_release(block, size.bytes);
    return;
  }
  shelf.bytes = size.bytes;
  all.stats.held_bytes += size.bytes;
  ++all.stats.held_blocks;
}

void block_trim(std::size_t keep) noexcept {
  std::lock_guard<std::mutex> hold(blocks().mutex);
  blocks().shrink_to(keep);
}

std::size_t block_limit() noexcept {
  std::lock_guard<std::mutex> hold(blocks().mutex);
  return blocks().limit;
}

void set_block_limit(std::size_t bytes) noexcept {
  std::lock_guard<std::mutex> hold(blocks().mutex);
  blocks().limit = bytes;
  blocks().shrink_to(bytes);
}

BlockStats block_stats() noexcept {
  std::lock_guard<std::mutex> hold(blocks().mutex);
  return blocks().stats;
}

std::size_t block_capacity(std::size_t bytes) noexcept { return size_class(bytes).bytes; }

void blocks_init() {
  blocks();
  // The forking thread holds the lock across fork, so the child never inherits one that a lost thread had taken.
  pthread_atfork([] { blocks().mutex.lock(); }, [] { blocks().mutex.unlock(); }, [] { blocks().mutex.unlock(); });
}

}  // namespace cyxla
