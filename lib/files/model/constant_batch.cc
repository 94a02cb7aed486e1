#include "lib/files/model/constant_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/files/model/expand.h"
#include "lib/files/model/follow_batch.h"
#include "lib/files/model/input_uses.h"

namespace ckplan {
namespace {

using onnx::TensorShapeProto;

const TensorShapeProto& DeclaredShape(const BoundInput& input) {
  return input.input->type().tensor_type().shape();
}

// Some exporters write 0 or -1 for an open dimension.
bool IsNumber(const TensorShapeProto::Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() >= 1;
}

bool IsScalar(const BoundInput& input) { return input.type.tensor_type().shape().dim_size() == 0; }

int64_t FirstDim(const BoundInput& input) {
  return input.type.tensor_type().shape().dim(0).dim_value();
}

void SetFirstDims(int64_t size, BoundDims* bound) {
  for (BoundInput& input : bound->inputs) {
    if (IsScalar(input)) continue;
    input.type.mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(size);
  }
}

bool IsZero(const BoundInput& input) {
  const TensorShapeProto& shape = DeclaredShape(input);
  return shape.dim_size() > 0 && shape.dim(0).has_dim_value() && shape.dim(0).dim_value() == 0;
}

// Formats a shape with this batch as users type it: "x=8,16".
std::string ShapeText(const BoundInput& input, int64_t batch) {
  const TensorShapeProto& shape = input.type.tensor_type().shape();
  std::string text = fmt::format("{}={}", ShortName(input.input->name()), batch);
  for (int i = 1; i < shape.dim_size(); ++i) text += fmt::format(",{}", shape.dim(i).dim_value());
  return text;
}

Error OpenBatch(const BoundInput& input, int64_t wanted, const std::string& file) {
  const TensorShapeProto& shape = DeclaredShape(input);
  const std::string dim = shape.dim_size() == 0 ? "" : shape.dim(0).dim_param();
  Error error = MakeError(
      ErrorCode::kUsage, fmt::format("{}: the batch of input \"{}\" is {}", file,
                                     ShortName(input.input->name()), IsZero(input) ? "0" : "open"));
  if (dim.empty()) {
    error.remedy = {"set its shape instead of a batch with",
                    {{"input_shapes", ShapeText(input, wanted)}}};
  } else {
    error.remedy = {"set its size with", {{"dims", fmt::format("{}={}", ShortName(dim), wanted)}}};
  }
  return error;
}

// Exporters also write 0 for an open batch. Then no operation depends on the number.
bool HasBatchOfZero(const BoundDims& bound) {
  bool has_zero = false;
  for (const BoundInput& input : bound.inputs) {
    if (IsScalar(input)) continue;
    if (!IsZero(input)) return false;
    has_zero = true;
  }
  return has_zero;
}

}  // namespace

std::optional<int64_t> ConstantBatch(const BoundDims& bound) {
  std::optional<int64_t> batch;
  for (const BoundInput& input : bound.inputs) {
    if (IsScalar(input)) continue;
    const TensorShapeProto& shape = DeclaredShape(input);
    if (shape.dim_size() == 0 || !IsNumber(shape.dim(0))) return std::nullopt;
    if (batch && *batch != shape.dim(0).dim_value()) return std::nullopt;
    batch = shape.dim(0).dim_value();
  }
  return batch;
}

std::string OpenBatchDim(const onnx::GraphProto& graph, const InputUses& uses) {
  std::string name;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (!uses.IsBatch(input.name()) || !input.type().has_tensor_type()) continue;
    const TensorShapeProto& shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0) continue;
    const std::string& first = shape.dim(0).dim_param();
    if (first.empty() || (!name.empty() && name != first)) return "";
    name = first;
  }
  return name;
}

bool SetNamelessBatch(const onnx::GraphProto& graph, const InputUses& uses, LoadOptions* options) {
  InputShapes shapes;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (!uses.IsBatch(input.name()) || !input.type().has_tensor_type()) continue;
    if (options->input_shapes.contains(input.name())) return false;
    onnx::TypeProto type = input.type();
    auto* const dims = type.mutable_tensor_type()->mutable_shape()->mutable_dim();
    if (dims->empty()) continue;
    const TensorShapeProto::Dimension& first = dims->Get(0);
    const bool is_nameless =
        first.dim_param().empty() && (!first.has_dim_value() || first.dim_value() < 0);
    if (!is_nameless) return false;
    dims->Mutable(0)->set_dim_value(options->batch);
    if (!FillDims(type, options->dims)) return false;
    for (const auto& dim : *dims) shapes[input.name()].push_back(dim.dim_value());
  }
  if (shapes.empty()) return false;
  options->input_shapes.insert(shapes.begin(), shapes.end());
  options->batch = 0;
  return true;
}

std::optional<int64_t> BatchOfShapes(const BoundDims& bound) {
  const std::optional<int64_t> in_file = ConstantBatch(bound);
  if (!in_file) return std::nullopt;
  std::optional<int64_t> batch;
  for (const BoundInput& input : bound.inputs) {
    if (IsScalar(input)) continue;
    const TensorShapeProto& declared = DeclaredShape(input);
    const TensorShapeProto& shape = input.type.tensor_type().shape();
    for (int i = 1; i < shape.dim_size(); ++i) {
      const bool is_same = declared.dim(i).dim_value() == shape.dim(i).dim_value();
      if (IsNumber(declared.dim(i)) && !is_same) return std::nullopt;
    }
    if (batch && *batch != FirstDim(input)) return std::nullopt;
    batch = FirstDim(input);
  }
  return batch == in_file ? std::nullopt : batch;
}

Result<BatchVariants> WithBatch(const BoundDims& bound, int64_t wanted, const std::string& file) {
  if (HasBatchOfZero(bound)) {
    BatchVariants same{bound, bound, wanted};
    SetFirstDims(wanted, &same.in_file);
    return same;
  }
  std::vector<std::string> firsts;
  for (const BoundInput& input : bound.inputs) {
    if (IsScalar(input)) continue;
    const TensorShapeProto& shape = DeclaredShape(input);
    if (shape.dim_size() == 0 || !IsNumber(shape.dim(0))) return OpenBatch(input, wanted, file);
    firsts.push_back(
        fmt::format("{} of \"{}\"", shape.dim(0).dim_value(), ShortName(input.input->name())));
  }
  const std::optional<int64_t> in_file = ConstantBatch(bound);
  if (!in_file) {
    return MakeError(
        ErrorCode::kUsage,
        firsts.empty()
            ? fmt::format("{}: no input has a dimension that could be the batch", file)
            : fmt::format("{}: the first dimensions of its inputs differ, so none of them is the "
                          "batch of all: {}; export the model with an open batch",
                          file, ShortList(firsts)));
  }
  for (const BoundInput& input : bound.inputs) {
    if (IsScalar(input) || FirstDim(input) == wanted || FirstDim(input) == *in_file) continue;
    return MakeError(
        ErrorCode::kUsage,
        fmt::format(
            "{}: the given shape of input \"{}\" has a batch of {}, not {}; use the same batch",
            file, ShortName(input.input->name()), FirstDim(input), wanted));
  }
  BatchVariants variants{bound, bound, *in_file};
  SetFirstDims(*in_file, &variants.in_file);
  SetFirstDims(wanted, &variants.wanted);
  variants.wanted.batch = wanted;
  return variants;
}

namespace {

// One reading finds all constants that prevent its operations from having shapes, so few are
// needed.
constexpr int kMaxReadings = 16;

}  // namespace

void ClearGraph(Model::Impl* model) {
  model->operations.clear();
  model->values.clear();
  model->made_nodes.clear();
  model->graph_inputs.clear();
  model->graph_outputs.clear();
  model->warnings.clear();
  model->live_outputs.clear();
  model->trainable_ends.clear();
  model->main_names.clear();
}

Result<Done> ExpandWithBatch(Model::Impl& model, const BoundDims& bound, int64_t batch,
                             const std::string& file) {
  CKPLAN_ASSIGN_OR_RETURN(const BatchVariants variants, WithBatch(bound, batch, file));
  if (variants.size_in_file == batch) return ExpandGraph(model, variants.in_file, file);
  Model::Impl in_file;
  in_file.proto = std::move(model.proto);
  in_file.part = model.part;
  in_file.op_hints = model.op_hints;
  const Result<Done> read = ExpandGraph(in_file, variants.in_file, file);
  model.proto = std::move(in_file.proto);
  model.live_outputs = in_file.live_outputs;
  model.trainable_ends = in_file.trainable_ends;
  CKPLAN_RETURN_IF_ERROR(read);
  BatchFollower follower(in_file, {variants.size_in_file, batch});
  for (int readings = 1;; ++readings) {
    Result<Done> done = ExpandGraph(model, variants.wanted, file, &follower);
    if (done.ok() || !follower.FoundNewConstants() || readings == kMaxReadings) return done;
    ClearGraph(&model);
  }
}

}  // namespace ckplan
