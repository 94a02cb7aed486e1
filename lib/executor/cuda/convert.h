// Conversions between float types and element orders. The libraries require both factors of a
// product to have the same type, and all tensors of a convolution the same order. A bfloat16
// operator's parameters are float32, so they are first rounded into the workspace.
#pragma once

#include <initializer_list>
#include <optional>

#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/strided_copy.h"

namespace ckplan::cuda {

// Returns the type for multiplying factors of these types: bfloat16 if any of them is bfloat16. A
// float32 factor is then a parameter or a constant.
ElementType CommonType(std::initializer_list<ElementType> types);

// Converts, or copies if the types are equal. Both are whole buffers, aligned as such.
void Convert(Device& device, int64_t count, const void* from, ElementType from_type, void* to,
             ElementType to_type);

// How a four-axis tensor is stored.
struct StoredAs {
  ElementType type = ElementType::kFloat32;
  bool is_channels_last = false;
};

// A tensor in the required form: the tensor itself, or a converted copy in the workspace.
class Conversion {
 public:
  Conversion() = default;
  // Converts types.
  Conversion(int64_t count, ElementType from, ElementType to, WorkspacePlan& plan)
      : count_(count), from_(from), to_(to) {
    if (is_needed()) offset_ = plan.Add(count * SizeOf(to));
  }
  // Converts types and orders.
  Conversion(const Dims& dims, const StoredAs& from, const StoredAs& to, WorkspacePlan& plan);

  bool is_needed() const { return from_ != to_ || reorder_.has_value(); }
  // Converts if necessary, and returns `data` or the converted copy.
  const void* Apply(Device& device, const void* data, void* workspace) const;

  // Returns the buffer in which to compute a result; Return converts it to the result's own type.
  void* Target(void* result, void* workspace) const {
    return is_needed() ? BufferAt(workspace, offset_) : result;
  }
  void Return(Device& device, void* result, void* workspace) const;

 private:
  int64_t count_ = 0;
  ElementType from_ = ElementType::kFloat32;
  ElementType to_ = ElementType::kFloat32;
  std::optional<StridedCopy> reorder_;  // Set if the orders differ; it also converts the type.
  int64_t offset_ = 0;
};

}  // namespace ckplan::cuda
