// Evaluates operations on small values known before the batch.
//
// Exporters compute shapes inside the graph, with Shape, Gather, Mul, Concat and Reshape. Once
// every dimension is bound, all of these values are known, and folding them gives ONNX's shape
// inference the numbers that it needs. Operations that move elements (Slice, Transpose, ...) return
// a source position for each element of the result, so that each is written once for all types.
// Values with more than kMaxFoldedElements elements are not folded.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/files/model/constant.h"

namespace ckplan {

// What is known about one input. For an omitted optional input, both pointers are null.
struct FoldInput {
  const ConstantValue* value = nullptr;
  // The dimensions may be known even if the contents are not: Shape needs only the dimensions.
  const Dims* dims = nullptr;
  int32_t elem_type = 0;
};

// True if operations of this standard operator can be folded.
bool IsFolded(std::string_view op_type);

// Returns the outputs, or nullopt if the operation can't be folded with these inputs.
std::optional<std::vector<ConstantValue>> FoldNode(const onnx::NodeProto& node,
                                                   const std::vector<FoldInput>& inputs);

}  // namespace ckplan
