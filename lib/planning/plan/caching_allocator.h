// Replays allocations by the rules of PyTorch's caching allocator for CUDA
// (c10/cuda/CUDACachingAllocator.cpp, with the default settings of PYTORCH_ALLOC_CONF).
//
// The allocator requests segments from the driver and hands out blocks of them. It keeps segments
// with free blocks, so a process holds more memory than its tensors need.
//
//   - Sizes are rounded up to 512 bytes. Size 0 takes no memory.
//   - Blocks of up to 1 MiB come from segments of 2 MiB. Larger blocks get segments of 20 MiB if
//     below 10 MiB, and otherwise of the block's size rounded up to 2 MiB.
//   - Best fit: the smallest free block that is large enough, and of several, the one at the lowest
//     address. The remainder becomes a free block if it has at least 512 bytes (small blocks) or
//     more than 1 MiB (large ones).
//   - A freed block merges with its free neighbours in the segment.
//   - If the driver has no room for a segment, all entirely free segments are returned to it.
//
// A replay models one stream and no other process. Each block costs O(log n).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

class CachingAllocator {
 public:
  static constexpr Bytes kNoLimit{int64_t{1} << 62};
  explicit CachingAllocator(Bytes capacity = kNoLimit) : capacity_(capacity.count()) {}

  // Identifies an allocated block.
  using BlockId = int32_t;
  static constexpr BlockId kNoBlock = -1;

  // Returns a block of at least `size` bytes, kNoBlock for size 0, or nullopt if out of memory.
  std::optional<BlockId> Allocate(Bytes size);
  void Release(BlockId block);  // Does nothing for kNoBlock.

  Bytes peak_requested() const { return peak_requested_; }  // Sizes before rounding.
  Bytes peak_reserved() const { return peak_reserved_; }    // Sizes of all segments.
  // The next larger capacity with which the calls so far would have run differently.
  Bytes next_capacity() const { return Bytes(next_capacity_); }

 private:
  // A piece of a segment, linked to its neighbours in the segment.
  struct Block {
    uint64_t address = 0;
    int64_t bytes = 0;
    int64_t requested = 0;
    bool is_small = false;
    bool is_used = false;
    BlockId before = kNoBlock;
    BlockId after = kNoBlock;
  };
  using FreeBlocks = std::set<std::tuple<int64_t, uint64_t, BlockId>>;  // Size, address.

  FreeBlocks& FreeOf(bool is_small) { return free_[is_small ? 0 : 1]; }
  std::optional<BlockId> TakeFree(int64_t size, bool is_small);
  std::optional<BlockId> AddSegment(int64_t size, bool is_small);
  void ReturnFreeSegments();
  void Split(BlockId block, int64_t size);
  void MergeWith(BlockId block, BlockId neighbour);
  BlockId AddBlock(const Block& block);
  bool HasRoomFor(int64_t size);

  int64_t capacity_;
  int64_t next_capacity_ = kNoLimit.count();
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_ids_;
  FreeBlocks free_[2];
  uint64_t next_address_ = 0;
  int64_t reserved_ = 0;
  int64_t requested_ = 0;
  Bytes peak_reserved_;
  Bytes peak_requested_;
};

}  // namespace ckplan
