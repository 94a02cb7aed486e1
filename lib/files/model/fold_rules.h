// Shared declarations of folding: the row type of the table in fold.cc, the functions that rows
// refer to, and their helpers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/files/model/fold.h"
#include "lib/files/model/model_impl.h"

namespace ckplan::folding {

using Inputs = std::vector<FoldInput>;
using Folded = std::optional<std::vector<ConstantValue>>;

// The result of moving elements: its shape and the source position of each element.
struct ElementMap {
  Dims dims;
  std::vector<size_t> sources;
};

struct FoldRule {
  std::string_view op;
  Folded (*fold)(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
  // The functions that `fold` applies to elements, for integers and for reals; null if unused.
  // Functions on integers return nullopt on overflow and on division by zero.
  std::optional<int64_t> (*join_ints)(int64_t a, int64_t b) = nullptr;
  double (*join_reals)(double a, double b) = nullptr;
  std::optional<int64_t> (*change_int)(int64_t x) = nullptr;
  double (*change_real)(double x) = nullptr;
  // For FoldMove: the source of each element. The contents of the first input are known.
  std::optional<ElementMap> (*map)(const onnx::NodeProto& node, const Inputs& inputs) = nullptr;
};

// ---- Functions that rows refer to ---------------------------------------------------------------

// fold_make.cc: shapes, ranges and literals; joining, cutting, reducing.
Folded FoldConstant(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldShape(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldSize(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldConstantOfShape(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldRange(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldConcat(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldSplit(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldReduce(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldNonZero(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);

// fold_elementwise.cc: functions that treat each element separately.
Folded FoldBinary(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldComparison(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldUnary(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldCast(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
Folded FoldWhere(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);

// fold_move.cc: functions that only move elements.
Folded FoldMove(const FoldRule& rule, const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapCopy(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapReshape(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapSqueeze(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapUnsqueeze(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapFlatten(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapTranspose(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapExpand(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapTile(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapGather(const onnx::NodeProto& node, const Inputs& inputs);
std::optional<ElementMap> MapSlice(const onnx::NodeProto& node, const Inputs& inputs);

// ---- Helpers ------------------------------------------------------------------------------------

bool IsSmall(const Dims& dims);
// Returns a single output, converted to the width of its type.
Folded One(ConstantValue value);
const ConstantValue* Known(const Inputs& inputs, size_t i);
bool AllKnown(const Inputs& inputs);
// Returns the elements of `from` in the order of `map`.
ConstantValue Pick(const ConstantValue& from, ElementMap map);

// The axes of an operator, an attribute in old opsets and an input in new ones. Negative axes count
// from the end. ReadAxes returns nullopt if the axes are given but unknown.
struct Axes {
  bool are_given = false;
  std::vector<int64_t> values;
};
std::optional<Axes> ReadAxes(const onnx::NodeProto& node, const Inputs& inputs, size_t input,
                             size_t rank);

// StridesOf returns the row-major strides of a shape. BroadcastDims returns the shape that both are
// broadcast to.
std::vector<int64_t> StridesOf(const Dims& dims);
std::optional<Dims> BroadcastDims(const Dims& a, const Dims& b);
// Returns, for each element of `to`, its source position in a tensor of shape `from`.
std::optional<std::vector<size_t>> BroadcastSources(const Dims& from, const Dims& to);

}  // namespace ckplan::folding
