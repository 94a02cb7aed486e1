// Evaluates operations on small values that are known before the batch is.
//
// Exporters compute shapes inside the graph: Shape, Gather, Mul, Concat, Reshape. With every
// dimension of the batch bound, all of that is known; once folded, ONNX's shape inference has the
// numbers it asks for. Idea: operations that move elements (Slice, Transpose, ...) yield a list
// of source positions, one for each element of the result, so that each is written once for all
// types. Anything above kMaxFoldedElements elements is left alone.
#pragma once

#include <optional>
#include <vector>

#include "lib/model/constant.h"

namespace ckplan {

// What is known of one input. An optional input that is left out has neither.
struct FoldInput {
  const ConstantValue* value = nullptr;
  const Dims* dims = nullptr;  // Known also where the contents are not: Shape needs no more.
  int32_t elem_type = 0;
};

// The outputs, or nothing if this operation, or these inputs, cannot be folded.
std::optional<std::vector<ConstantValue>> FoldNode(const onnx::NodeProto& node,
                                                   const std::vector<FoldInput>& inputs);

}  // namespace ckplan
