// Recycled memory for results, arenas and temporaries.
//
// A fresh page costs the kernel far more than the program's own use of it (a fresh 4 MiB result: 50 times a memset of
// memory in use), so blocks are kept when their owner dies and handed out again, most recently used first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla {

struct BlockStats {
  std::uint64_t in_use_bytes = 0;  // handed out now
  std::uint64_t in_use_blocks = 0;
  std::uint64_t held_bytes = 0;  // free, kept for the next owner
  std::uint64_t held_blocks = 0;
  std::uint64_t hits = 0;    // served from a kept block
  std::uint64_t misses = 0;  // served by the system
};

void *block_acquire(std::size_t bytes) noexcept;
void block_release(void *block, std::size_t bytes) noexcept;

// Give free blocks back to the system until at most `keep` bytes are held.
void block_trim(std::size_t keep) noexcept;
std::size_t block_limit() noexcept;
void set_block_limit(std::size_t bytes) noexcept;
BlockStats block_stats() noexcept;

// The bytes really reserved for a request: its size class.
std::size_t block_capacity(std::size_t bytes) noexcept;

void blocks_init();  // once, before any other use: makes the pool survive fork

}  // namespace cyxla
