// Sparse initializers and constants: tensors of zeros, with some elements listed by position. They
// are planned, and run, as the dense tensors that they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/files/model/constant.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// Returns the row-major position of each listed element. Nothing if positions are absent (external,
// left out), are not int64[n] or int64[n,rank], or lie outside the tensor.
std::optional<std::vector<int64_t>> SparsePositions(const onnx::SparseTensorProto& sparse);

// Returns the dense contents; nothing where ReadTensor would return nothing, or SparsePositions
// does.
std::optional<ConstantValue> ReadSparse(const onnx::SparseTensorProto& sparse);

}  // namespace ckplan
