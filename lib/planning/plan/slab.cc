#include "lib/planning/plan/slab.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lib/base/units.h"

namespace ckplan {

int Slab::Allocate(const LiveBuffer& buffer, const std::string& what) {
  const auto id = static_cast<int>(blocks_.size());
  const Bytes bytes = buffer.bytes;
  Block block{bytes, Bytes(0), what, buffer};
  if (offsets_ != nullptr) {
    if (blocks_.size() >= offsets_->size()) {
      Fault(fmt::format("the arena has no offset for buffer {} ({})", id, what));
    } else {
      block.offset = (*offsets_)[blocks_.size()];
      Place(block);
    }
  }
  blocks_.push_back(block);
  live_ += bytes;
  if (live_ > highest_) {
    highest_ = live_;
    peak_id_ = id;
  }
  return id;
}

void Slab::HandOver(int id, TensorId tensor) {
  Block& block = blocks_[static_cast<size_t>(id)];
  // AtPeak needs the time to know which tensor the block held then.
  block.heirs.emplace_back(static_cast<int>(blocks_.size()), tensor);
}

void Slab::Release(int id) {
  Block& block = blocks_[static_cast<size_t>(id)];
  block.released_before = static_cast<int>(blocks_.size());
  live_ -= block.bytes;
  if (offsets_ == nullptr || block.bytes == Bytes(0)) return;
  const auto it = by_offset_.find(block.offset);
  if (it != by_offset_.end() && it->second.id == id) by_offset_.erase(it);
}

std::vector<LiveBuffer> Slab::AtPeak() const {
  std::vector<LiveBuffer> live;
  for (int id = 0; id <= peak_id_; ++id) {
    const Block& block = blocks_[static_cast<size_t>(id)];
    if (block.bytes == Bytes(0) || block.released_before <= peak_id_) continue;
    live.push_back(block.buffer);
    for (const auto& [time, heir] : block.heirs) {
      if (time <= peak_id_) live.back().index = heir.index();
    }
  }
  return live;
}

void Slab::Fault(std::string text) {
  if (!fault_) fault_ = std::move(text);
}

void Slab::Place(const Block& block) {
  const size_t row = blocks_.size();
  if (block.offset < Bytes(0)) {
    return Fault(fmt::format("offset {} ({}) is negative", row, block.what));
  }
  const std::optional<int64_t> sum = CheckedAdd(block.offset.count(), block.bytes.count());
  if (!sum) {
    return Fault(fmt::format("offset {} ({}) is {}: with {} bytes there, the end overflows", row,
                             block.what, block.offset.count(), block.bytes.count()));
  }
  const Bytes end(*sum);
  end_ = std::max(end_, end);
  if (block.bytes == Bytes(0)) return;
  if (block.offset.count() % alignment_ != 0) {
    return Fault(fmt::format("offset {} ({}) is {}, which is not a multiple of align_bytes, {}",
                             row, block.what, block.offset.count(), alignment_));
  }
  const auto after = by_offset_.lower_bound(block.offset);
  if (after != by_offset_.end() && after->first < end) Overlap(block, after->second);
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->second.end > block.offset) Overlap(block, before->second);
  }
  by_offset_[block.offset] = {end, static_cast<int>(row)};
}

void Slab::Overlap(const Block& block, const Placed& other) {
  Fault(fmt::format("in the arena, {} overlaps {}, which is live at the same time", block.what,
                    blocks_[static_cast<size_t>(other.id)].what));
}

}  // namespace ckplan
