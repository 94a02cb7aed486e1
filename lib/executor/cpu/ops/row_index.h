// Maps each index, or tuple of indices, to a row of the data; see lib/problem/ops/gather.h.
#pragma once

#include "lib/executor/cpu/layout.h"
#include "lib/problem/ops/gather.h"

namespace ckplan::cpu {

class RowIndex {
 public:
  RowIndex() = default;
  // `type` is the element type of the indices.
  RowIndex(ElementType type, const GatherShape& shape)
      : is_long_(type == ElementType::kInt64),
        is_shared_(shape.is_shared),
        count_(shape.count),
        dims_(shape.indexed),
        strides_(RowMajorStrides(dims_)) {}

  int64_t rows() const { return Product(dims_); }
  int64_t count() const { return count_; }

  // Negative indices count from the end. Returns -1 if any is out of range: such an index reads
  // zeros and writes nothing.
  int64_t RowOf(const void* indices, int64_t outer, int64_t i) const {
    const int64_t first =
        ((is_shared_ ? 0 : outer * count_) + i) * static_cast<int64_t>(dims_.size());
    int64_t row = 0;
    for (size_t k = 0; k < dims_.size(); ++k) {
      int64_t at = Read(indices, first + static_cast<int64_t>(k));
      if (at < 0) at += dims_[k];
      if (at < 0 || at >= dims_[k]) return -1;
      row += at * strides_[k];
    }
    return row;
  }

 private:
  int64_t Read(const void* indices, int64_t i) const {
    return is_long_ ? static_cast<const int64_t*>(indices)[i]
                    : static_cast<const int32_t*>(indices)[i];
  }

  bool is_long_ = true, is_shared_ = true;
  int64_t count_ = 0;
  Dims dims_, strides_;
};

// Calls body(outer, begin, end) for disjoint ranges that together cover all rows. One thread
// handles a range, so sums into a row are added in the order of the indices.
template <typename Body>
void ForOwnedRows(int64_t outer, int64_t rows, int64_t inner, const Body& body) {
  constexpr int64_t kMaxOwners = 16;
  const bool is_small = rows * inner < kGrain;
  const int64_t owners = outer >= kMaxOwners || is_small ? 1
                         : rows < kMaxOwners             ? rows
                                                         : kMaxOwners;
  const int64_t work = rows * inner / owners + 1;
  const int64_t grain = work >= kGrain ? 1 : kGrain / work;
  ParallelFor(outer * owners, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t owner = task % owners;
      body(task / owners, rows * owner / owners, rows * (owner + 1) / owners);
    }
  });
}

}  // namespace ckplan::cpu
