// Floats from one type into the other. The libraries take all factors of a product in one type; of
// an operator on bfloat16, the parameters are float32, and are rounded into the workspace first.
#pragma once

#include <initializer_list>

#include "lib/cuda/device.h"
#include "lib/cuda/workspace.h"

namespace ckplan::cuda {

// The type to multiply in: bfloat16 if one of these is. What is float32 beside it is a parameter or
// a constant.
ElementType CommonType(std::initializer_list<ElementType> types);

// Copies where the types are the same. Any alignment of elements will do.
void Convert(Device& device, int64_t count, const void* from, ElementType from_type, void* to,
             ElementType to_type);

// A tensor in the type in which it is needed: itself, or a copy in the workspace.
class Conversion {
 public:
  Conversion() = default;
  Conversion(int64_t count, ElementType from, ElementType to, WorkspacePlan& plan)
      : count_(count), from_(from), to_(to) {
    if (is_needed()) offset_ = plan.Add(count * SizeOf(to));
  }

  bool is_needed() const { return from_ != to_; }
  // `data`, or where it has been converted to.
  const void* Apply(Device& device, const void* data, void* workspace) const;

  // Where Apply has put it before.
  const void* Applied(const void* data, void* workspace) const {
    return is_needed() ? BufferAt(workspace, offset_) : data;
  }

  // For results the other way: where to compute them, and from there into their own type.
  void* Target(void* result, void* workspace) const {
    return is_needed() ? BufferAt(workspace, offset_) : result;
  }
  void Return(Device& device, void* result, void* workspace) const;

 private:
  int64_t count_ = 0;
  ElementType from_ = ElementType::kFloat32;
  ElementType to_ = ElementType::kFloat32;
  int64_t offset_ = 0;
};

}  // namespace ckplan::cuda
