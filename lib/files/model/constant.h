// Small values known before the batch: shapes, axes, ratios, index ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace ckplan {

using Dims = std::vector<int64_t>;

// Returns nullopt if the product overflows or a dimension is negative.
std::optional<int64_t> ElementCount(const Dims& dims);
// Returns nullopt on overflow, or for types without a fixed size (strings). Types narrower than a
// byte are packed, as in ONNX.
std::optional<int64_t> TensorBytes(int32_t elem_type, const Dims& dims);
bool IsFloatType(int32_t elem_type);
// Returns a text such as "float[4,3,224,224]".
std::string TypeText(int32_t elem_type, const Dims& dims);

// Tensors with more elements are never shapes, so only their dimensions are tracked.
inline constexpr int64_t kMaxFoldedElements = 4096;

// Row-major. Integers and booleans stay exact 64-bit integers (INT64_MAX is a common Slice end);
// floats are doubles, rounded to their own type after each operation.
struct ConstantValue {
  int32_t elem_type = 0;
  Dims dims;
  std::vector<int64_t> ints;
  std::vector<double> reals;

  bool is_float() const { return IsFloatType(elem_type); }
  size_t size() const { return is_float() ? reals.size() : ints.size(); }
};

// Returns nullopt if the contents are missing (external, omitted, damaged), too large, or neither
// numbers nor booleans.
std::optional<ConstantValue> ReadTensor(const onnx::TensorProto& tensor);
onnx::TensorProto MakeTensor(const ConstantValue& value);

// Wraps integers to their type's width and rounds floats, as the type itself would.
void NormalizeToType(ConstantValue& value);

// Sparse initializers and constants: tensors of zeros with some elements listed by position. They
// are planned and run as the equivalent dense tensors.

// Returns the row-major position of each listed element; nullopt if positions are missing
// (external, omitted), are not int64[n] or int64[n,rank], or are out of range.
std::optional<std::vector<int64_t>> SparsePositions(const onnx::SparseTensorProto& sparse);

// Returns the dense contents; nullopt if ReadTensor or SparsePositions returns nullopt.
std::optional<ConstantValue> ReadSparse(const onnx::SparseTensorProto& sparse);

}  // namespace ckplan
