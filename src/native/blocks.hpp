// Recycled memory for results, arenas and temporaries.
//
// Mapping a page takes far longer than using it (a new 4 MiB result: 50 times a memset of mapped memory), so released
// blocks are kept and reused, the most recently used first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla {

struct BlockStats {
  std::uint64_t in_use_bytes = 0;  // bytes of blocks that have an owner
  std::uint64_t in_use_blocks = 0;
  std::uint64_t held_bytes = 0;  // bytes of free blocks
  std::uint64_t held_blocks = 0;
  std::uint64_t hits = 0;    // requests served by a free block
  std::uint64_t misses = 0;  // requests served by the system
};

// Flag of a number of bytes to acquire or release: a large block has small pages, for memory of which little is used.
// The first access to a huge page takes a millisecond.
constexpr std::size_t kSmallPages = std::size_t{1} << 63;

void *block_acquire(std::size_t bytes) noexcept;
void block_release(void *block, std::size_t bytes) noexcept;

// Give the pages of a block beyond the first `keep` bytes back to the system, which maps zeros there at the next access.
// That takes a microsecond; blocks of at most a huge page more than 2 * keep bytes are left as they are. Return false
// if more than 2 * keep bytes would remain of another, which is then as before.
bool block_discard(void *block, std::size_t bytes, std::size_t keep) noexcept;

// Return free blocks to the system until at most `keep` bytes are free.
void block_trim(std::size_t keep) noexcept;
std::size_t block_limit() noexcept;
void set_block_limit(std::size_t bytes) noexcept;
BlockStats block_stats() noexcept;

// Size class of a request: the bytes that it reserves.
std::size_t block_capacity(std::size_t bytes) noexcept;

void blocks_init();  // once, before any other use; installs the fork handlers

}  // namespace cyxla
