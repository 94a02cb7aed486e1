// Writes named tensors as an ONNX file, for other programs to read them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lib/ops/op_spec.h"

namespace ckplan {

struct NamedTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;
  std::string contents;  // Row-major, little-endian.
};

// Protobuf cannot read messages larger than this.
inline constexpr int64_t kMaxTensorFileBytes = std::numeric_limits<int32_t>::max();

// The bytes of an ONNX model without nodes, whose initializers are `tensors`, in their order. The
// contents of all of them must be kMaxTensorFileBytes or less.
std::string TensorFileBytes(const std::string& graph_name, std::vector<NamedTensor> tensors);

}  // namespace ckplan
