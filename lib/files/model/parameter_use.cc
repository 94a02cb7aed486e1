#include "lib/files/model/parameter_use.h"

#include <algorithm>
#include <utility>

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

int64_t ProductFrom(const Dims& dims, size_t first) {
  int64_t product = 1;
  for (size_t i = first; i < dims.size(); ++i) product *= dims[i];
  return std::max<int64_t>(product, 1);
}

int64_t DimFromEnd(const Dims& dims, size_t back) {
  return dims.size() < back ? 1 : dims[dims.size() - back];
}

class BoundFinder {
 public:
  explicit BoundFinder(const Model::Impl& model) : model_(model), bounds_(model.values.size(), 0) {}

  std::vector<int64_t> Find() && {
    for (const ModelOperation& operation : model_.operations) {
      if (operation.type().starts_with("Gather") && operation.inputs.size() > 1) {
        BoundIndices(operation);
      }
    }
    return std::move(bounds_);
  }

 private:
  // Indices come from the batch or from the file, and may be reshaped, cast, or cut on the way: the
  // values they are made from have the same bound.
  void BoundIndices(const ModelOperation& operation) {
    const ValueIndex data = operation.input(0);
    if (data == kNoValue || operation.input(1) == kNoValue) return;
    const Dims& dims = model_.value(data).dims;
    int64_t axis = IntAttribute(*operation.node, "axis", 0);
    if (axis < 0) axis += static_cast<int64_t>(dims.size());
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return;
    const int64_t bound = dims[static_cast<size_t>(axis)];
    ValueIndex at = operation.inputs[1];
    while (at != kNoValue) {
      SetBound(at, bound);
      const ModelValue& value = model_.value(at);
      if (value.source != ModelValue::Source::kOperation) return;
      const ModelOperation& producer = model_.operations[static_cast<size_t>(value.producer)];
      if (!producer.is_standard() || !RuleOf(producer.type()).is_movement()) return;
      at = producer.input(0);
    }
  }

  void SetBound(ValueIndex value, int64_t bound) {
    int64_t& known = bounds_[static_cast<size_t>(value)];
    known = known == 0 ? bound : std::min(known, bound);
  }

  const Model::Impl& model_;
  std::vector<int64_t> bounds_;
};

}  // namespace

UsedAs UseOf(const ModelOperation& operation, size_t position, const Dims& dims) {
  const std::string& type = operation.type();
  if (RuleOf(type).has(traits::kNormalisation))
    return {position == 1 ? ParameterUse::kScale : ParameterUse::kShift, 1};
  if (type == "Gather") return {ParameterUse::kEmbedding, 1};
  if (type == "LSTM" || type == "GRU" || type == "RNN") {
    if (position == 1 || position == 2) return {ParameterUse::kWeight, DimFromEnd(dims, 1)};
    return {ParameterUse::kShift, 1};
  }
  if (type == "Conv" || type == "ConvTranspose") {
    if (position == 2) return {ParameterUse::kShift, 1};
    const int64_t fan_in = type == "Conv" ? ProductFrom(dims, 1) : dims.empty() ? 1 : dims[0];
    return {ParameterUse::kWeight, fan_in};
  }
  if (type == "Gemm") {
    if (position == 2) return {ParameterUse::kShift, 1};
    const bool is_transposed = IntAttribute(*operation.node, "transB", 0) != 0;
    return {ParameterUse::kWeight, DimFromEnd(dims, is_transposed ? 1 : 2)};
  }
  if (type == "MatMul") return {ParameterUse::kWeight, DimFromEnd(dims, position == 1 ? 2 : 1)};
  if (type == "Einsum") return {ParameterUse::kWeight, dims.empty() ? 1 : dims[0]};
  if (type == "Add" || type == "Sub" || type == "Sum") return {ParameterUse::kShift, 1};
  if (type == "Mul" || type == "Div") return {ParameterUse::kScale, 1};
  return {};
}

std::vector<int64_t> IndexBounds(const Model::Impl& model) { return BoundFinder(model).Find(); }

}  // namespace ckplan
