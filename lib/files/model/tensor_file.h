// Writes named tensors as an ONNX file that other programs can read.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct NamedTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;
  std::string contents;  // Row-major, little-endian.
};

// Protobuf cannot read messages larger than this.
inline constexpr int64_t kMaxTensorFileBytes = std::numeric_limits<int32_t>::max();

// Returns the bytes of an ONNX model without nodes, whose initializers are `tensors`, in their
// order. Their contents together must not exceed kMaxTensorFileBytes.
std::string TensorFileBytes(const std::string& graph_name, std::vector<NamedTensor> tensors);

}  // namespace ckplan
