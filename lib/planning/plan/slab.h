// Memory in a plan's layout, for the checker only. Each allocation uses the plan's next offset; the
// slab reports wrong offsets.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

class Slab {
 public:
  // Without offsets, it only counts bytes. Offsets of non-empty buffers must be multiples of
  // `alignment`.
  explicit Slab(const std::vector<Bytes>* offsets, int64_t alignment = 1)
      : offsets_(offsets), alignment_(alignment) {}

  // `what` names the buffer in messages.
  int Allocate(const LiveBuffer& buffer, const std::string& what);
  // Makes `tensor` the content of the block.
  void HandOver(int id, TensorId tensor);
  void Release(int id);

  Bytes live() const { return live_; }
  Bytes highest() const { return highest_; }
  Bytes end() const { return end_; }
  size_t allocations() const { return blocks_.size(); }
  // The first fault, if any.
  const std::optional<std::string>& fault() const { return fault_; }

  // The contents of memory when the peak was first reached. Time is the number of allocations:
  // block 7 is allocated at time 7.
  std::vector<LiveBuffer> AtPeak() const;

 private:
  struct Block {
    Bytes bytes;
    Bytes offset;
    std::string what;
    LiveBuffer buffer;                                      // As it was allocated.
    std::vector<std::pair<int, TensorId>> heirs = {};       // Tensors that reused it, and when.
    int released_before = std::numeric_limits<int>::max();  // The time of the next allocation.
  };
  struct Placed {
    Bytes end;
    int id;
  };

  void Fault(std::string text);
  void Place(const Block& block);
  void Overlap(const Block& block, const Placed& other);

  const std::vector<Bytes>* offsets_;
  int64_t alignment_;
  std::vector<Block> blocks_;
  std::map<Bytes, Placed> by_offset_;
  Bytes live_;
  Bytes highest_;
  int peak_id_ = -1;  // The allocation that reached the peak first.
  Bytes end_;
  std::optional<std::string> fault_;
};

}  // namespace ckplan
