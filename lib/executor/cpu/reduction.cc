#include "lib/executor/cpu/reduction.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kMaxParts = 16;
constexpr int64_t kEnoughTasks = 16;  // Enough for all threads of a machine.

}  // namespace

Reduction::Reduction(Layout layout, size_t target) : layout_(std::move(layout)) {
  const size_t operands = layout_.strides.size();
  kept_.strides.resize(operands);
  reduced_.strides.resize(operands);
  for (size_t axis = 0; axis < layout_.dims.size(); ++axis) {
    const bool is_kept = layout_.strides[target][axis] != 0;
    if (is_kept) results_ *= layout_.dims[axis];
    if (axis + 1 == layout_.dims.size()) {
      is_inner_kept_ = is_kept;
      break;
    }
    Axes& axes = is_kept ? kept_ : reduced_;
    axes.dims.push_back(layout_.dims[axis]);
    for (size_t k = 0; k < operands; ++k) axes.strides[k].push_back(layout_.strides[k][axis]);
  }
  tiles_ = (layout_.inner() + kTile - 1) / kTile;
  steps_ = reduced_.count() * (is_inner_kept_ ? 1 : tiles_);
  const int64_t rows = kept_.count() * (is_inner_kept_ ? tiles_ : 1);
  if (rows < kEnoughTasks && layout_.count() >= 4 * kGrain) {
    parts_ = std::clamp<int64_t>(steps_, 1, kMaxParts);
  }
}

int64_t Reduction::workspace() const {
  return parts_ == 1 ? 0 : parts_ * results_ * static_cast<int64_t>(sizeof(double));
}

void Reduction::Axes::AddOffsets(int64_t index, Dims& offsets) const {
  for (size_t axis = dims.size(); axis-- > 0;) {
    const int64_t at = index % dims[axis];
    index /= dims[axis];
    for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += at * strides[k][axis];
  }
}

}  // namespace ckplan::cpu
