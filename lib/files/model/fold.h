// Evaluates operations on small values that are known before the batch.
//
// Exporters compute shapes inside the graph, with Shape, Gather, Mul, Concat and Reshape. Once
// every dimension of the batch is bound, all of these values are known, and after folding them
// ONNX's shape inference has the numbers that it needs. Operations that move elements (Slice,
// Transpose, ...) return a list of source positions, one for each element of the result, so that
// each is written once for all types. Values with more than kMaxFoldedElements elements are not
// folded.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/files/model/constant.h"

namespace ckplan {

// Knowledge about one input. For an optional input that is left out, both pointers are null.
struct FoldInput {
  const ConstantValue* value = nullptr;
  // The dimensions may be known even if the contents are not: Shape needs only the dimensions.
  const Dims* dims = nullptr;
  int32_t elem_type = 0;
};

// Returns whether operations of this standard operator are folded at all.
bool IsFolded(std::string_view op_type);

// Returns the outputs, or nothing if the operation cannot be folded with these inputs.
std::optional<std::vector<ConstantValue>> FoldNode(const onnx::NodeProto& node,
                                                   const std::vector<FoldInput>& inputs);

}  // namespace ckplan
