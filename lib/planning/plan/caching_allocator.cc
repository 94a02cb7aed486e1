#include "lib/planning/plan/caching_allocator.h"

#include <algorithm>

namespace ckplan {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMinBlock = 512;
constexpr int64_t kLargestSmallBlock = kMiB;
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kSharedSegment = 20 * kMiB;
constexpr int64_t kMinOwnSegment = 10 * kMiB;
constexpr int64_t kSegmentStep = 2 * kMiB;

int64_t RoundUpTo(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

int64_t SegmentFor(int64_t size) {
  if (size <= kLargestSmallBlock) return kSmallSegment;
  return size < kMinOwnSegment ? kSharedSegment : RoundUpTo(size, kSegmentStep);
}

}  // namespace

std::optional<CachingAllocator::BlockId> CachingAllocator::Allocate(Bytes size) {
  if (size == Bytes(0)) return kNoBlock;
  const int64_t rounded = RoundUpTo(size.count(), kMinBlock);
  const bool is_small = rounded <= kLargestSmallBlock;
  std::optional<BlockId> block = TakeFree(rounded, is_small);
  if (!block) block = AddSegment(rounded, is_small);
  if (!block) return std::nullopt;
  Split(*block, rounded);
  Block& used = blocks_[static_cast<size_t>(*block)];
  used.is_used = true;
  used.requested = size.count();
  requested_ += size.count();
  peak_requested_ = std::max(peak_requested_, Bytes(requested_));
  return block;
}

void CachingAllocator::Release(BlockId block) {
  if (block == kNoBlock) return;
  Block& freed = blocks_[static_cast<size_t>(block)];
  requested_ -= freed.requested;
  freed.is_used = false;
  for (const BlockId neighbour : {freed.before, freed.after}) {
    if (neighbour == kNoBlock) continue;
    const Block& other = blocks_[static_cast<size_t>(neighbour)];
    if (other.is_used) continue;
    FreeOf(other.is_small).erase({other.bytes, other.address, neighbour});
    MergeWith(block, neighbour);
  }
  FreeOf(freed.is_small).insert({freed.bytes, freed.address, block});
}

std::optional<CachingAllocator::BlockId> CachingAllocator::TakeFree(int64_t size, bool is_small) {
  FreeBlocks& free = FreeOf(is_small);
  const auto found = free.lower_bound({size, 0, kNoBlock});
  if (found == free.end()) return std::nullopt;
  const BlockId block = std::get<2>(*found);
  free.erase(found);
  return block;
}

std::optional<CachingAllocator::BlockId> CachingAllocator::AddSegment(int64_t size, bool is_small) {
  const int64_t segment = SegmentFor(size);
  if (!HasRoomFor(segment)) {
    ReturnFreeSegments();
    if (!HasRoomFor(segment)) return std::nullopt;
  }
  reserved_ += segment;
  peak_reserved_ = std::max(peak_reserved_, Bytes(reserved_));
  Block block;
  block.address = next_address_;
  block.bytes = segment;
  block.is_small = is_small;
  next_address_ += static_cast<uint64_t>(segment);
  return AddBlock(block);
}

void CachingAllocator::ReturnFreeSegments() {
  for (FreeBlocks& free : free_) {
    std::erase_if(free, [&](const auto& row) {
      const Block& block = blocks_[static_cast<size_t>(std::get<2>(row))];
      if (block.before != kNoBlock || block.after != kNoBlock) return false;
      reserved_ -= block.bytes;
      unused_ids_.push_back(std::get<2>(row));
      return true;
    });
  }
}

void CachingAllocator::Split(BlockId id, int64_t size) {
  const Block block = blocks_[static_cast<size_t>(id)];
  const int64_t left = block.bytes - size;
  if (block.is_small ? left < kMinBlock : left <= kLargestSmallBlock) return;
  Block rest;
  rest.address = block.address + static_cast<uint64_t>(size);
  rest.bytes = left;
  rest.is_small = block.is_small;
  rest.before = id;
  rest.after = block.after;
  const BlockId rest_id = AddBlock(rest);
  if (rest.after != kNoBlock) blocks_[static_cast<size_t>(rest.after)].before = rest_id;
  blocks_[static_cast<size_t>(id)].after = rest_id;
  blocks_[static_cast<size_t>(id)].bytes = size;
  FreeOf(rest.is_small).insert({rest.bytes, rest.address, rest_id});
}

void CachingAllocator::MergeWith(BlockId id, BlockId neighbour) {
  Block& block = blocks_[static_cast<size_t>(id)];
  const Block& other = blocks_[static_cast<size_t>(neighbour)];
  block.bytes += other.bytes;
  if (neighbour == block.before) {
    block.address = other.address;
    block.before = other.before;
    if (block.before != kNoBlock) blocks_[static_cast<size_t>(block.before)].after = id;
  } else {
    block.after = other.after;
    if (block.after != kNoBlock) blocks_[static_cast<size_t>(block.after)].before = id;
  }
  unused_ids_.push_back(neighbour);
}

CachingAllocator::BlockId CachingAllocator::AddBlock(const Block& block) {
  if (unused_ids_.empty()) {
    blocks_.push_back(block);
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId id = unused_ids_.back();
  unused_ids_.pop_back();
  blocks_[static_cast<size_t>(id)] = block;
  return id;
}

bool CachingAllocator::HasRoomFor(int64_t size) {
  if (size <= capacity_ - reserved_) return true;
  next_capacity_ = std::min(next_capacity_, reserved_ + size);
  return false;
}

}  // namespace ckplan
