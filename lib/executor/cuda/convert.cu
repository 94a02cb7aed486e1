#include <algorithm>

#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/launch.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

namespace {

struct Same {
  CKPLAN_DEVICE float operator()(float x) const { return x; }
};

// Returns the strides of the model's axes in memory.
Dims StridesOf(const Dims& dims, bool is_channels_last) {
  if (!is_channels_last) return RowMajorStrides(dims);
  const Dims stored = RowMajorStrides({dims[0], dims[2], dims[3], dims[1]});
  return {stored[0], stored[3], stored[1], stored[2]};
}

}  // namespace

ElementType CommonType(std::initializer_list<ElementType> types) {
  const bool has_half =
      std::find(types.begin(), types.end(), ElementType::kBFloat16) != types.end();
  return has_half ? ElementType::kBFloat16 : ElementType::kFloat32;
}

void Convert(Device& device, int64_t count, const void* from, ElementType from_type, void* to,
             ElementType to_type) {
  if (from_type == to_type) {
    device.Copy(to, from, count * SizeOf(to_type));
    return;
  }
  Map(device, count, FloatsOut(to, to_type), Same(), FloatsIn(from, from_type));
}

Conversion::Conversion(const Dims& dims, const StoredAs& from, const StoredAs& to,
                       WorkspacePlan& plan)
    : count_(Product(dims)), from_(from.type), to_(to.type) {
  if (from.is_channels_last != to.is_channels_last && !HasOneOrder(dims)) {
    reorder_.emplace(dims, CopySide{from.type, StridesOf(dims, from.is_channels_last)},
                     CopySide{to.type, StridesOf(dims, to.is_channels_last)});
  }
  if (is_needed()) offset_ = plan.Add(count_ * SizeOf(to_));
}

const void* Conversion::Apply(Device& device, const void* data, void* workspace) const {
  if (!is_needed()) return data;
  void* copy = BufferAt(workspace, offset_);
  if (reorder_) {
    reorder_->Run(device, data, copy);
  } else {
    Convert(device, count_, data, from_, copy, to_);
  }
  return copy;
}

void Conversion::Return(Device& device, void* result, void* workspace) const {
  if (!is_needed()) return;
  const void* copy = BufferAt(workspace, offset_);
  if (reorder_) {
    reorder_->Reversed().Run(device, copy, result);
  } else {
    Convert(device, count_, copy, to_, result, from_);
  }
}

}  // namespace ckplan::cuda
