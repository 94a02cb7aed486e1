// Evaluates operations on small values that are known before the batch is.
//
// Exporters compute shapes inside the graph: Shape, Gather, Mul, Concat, Reshape. With every
// dimension of the batch bound, all of that is known; once folded, ONNX's shape inference has the
// numbers it asks for. Idea: operations that move elements (Slice, Transpose, ...) yield a list
// of source positions, one for each element of the result, so that each is written once for all
// types. Anything above kMaxFoldedElements elements is left alone.
#pragma once

#include <optional>
#include <string_view>
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

// Operators of fold_elementwise.cc.
std::optional<std::vector<ConstantValue>> FoldElementwise(const onnx::NodeProto& node,
                                                          const std::vector<FoldInput>& inputs);
// "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "And", "Or", "Xor". Nothing on overflow
// and on division by zero.
std::optional<int64_t> ApplyToInts(std::string_view op, int64_t a, int64_t b);

// Operators of fold_move.cc: the result's shape, and for each element its source position.
struct ElementMap {
  Dims dims;
  std::vector<size_t> sources;
};
std::optional<ElementMap> MapElements(const onnx::NodeProto& node,
                                      const std::vector<FoldInput>& inputs);

// Axes of an operator that had them as an attribute and has them as an input since; negative
// ones count from the end. Nothing if they are given but not known.
struct Axes {
  bool are_given = false;
  std::vector<int64_t> values;
};
std::optional<Axes> ReadAxes(const onnx::NodeProto& node, const std::vector<FoldInput>& inputs,
                             size_t input, size_t rank);

// Row-major strides of a shape, and a shape that both broadcast to.
std::vector<int64_t> StridesOf(const Dims& dims);
std::optional<Dims> BroadcastDims(const Dims& a, const Dims& b);
// For each element of `to`, the position of its source in a tensor of shape `from`.
std::optional<std::vector<size_t>> BroadcastSources(const Dims& from, const Dims& to);

}  // namespace ckplan
