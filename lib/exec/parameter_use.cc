#include "lib/exec/parameter_use.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace ckplan {

namespace {

struct Use {
  ParameterUse use = ParameterUse::kOther;
  int64_t fan_in = 1;
};

int64_t ProductFrom(const Dims& dims, size_t first) {
  int64_t product = 1;
  for (size_t i = first; i < dims.size(); ++i) product *= dims[i];
  return std::max<int64_t>(product, 1);
}

int64_t DimFromEnd(const Dims& dims, size_t back) {
  return dims.size() < back ? 1 : dims[dims.size() - back];
}

bool IsNormalisation(std::string_view type) { return type.ends_with("Normalization"); }

Use UseOf(const Operation& operation, size_t position, const Dims& dims) {
  const std::string& type = operation.type();
  if (IsNormalisation(type))
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

class UseFinder {
 public:
  UseFinder(const Model::Impl& model, const ModelFacts& facts,
            const std::vector<ConstantId>& constant_of, StepGraph& step)
      : model_(model), facts_(facts), constant_of_(constant_of), step_(step) {}

  void Find() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const Operation& operation = model_.operations[i];
      const OperationFacts& own = facts_.operations[i];
      if (!own.is_live || !own.is_batch) continue;
      for (size_t k = 0; k < own.reads_trained.size(); ++k) {
        if (own.reads_trained[k]) MarkLeaves(operation, k);
      }
    }
    for (const Operation& operation : model_.operations) {
      if (operation.type().starts_with("Gather") && operation.inputs.size() > 1) {
        BoundIndices(operation);
      }
    }
  }

 private:
  void MarkLeaves(const Operation& operation, size_t position) {
    const ValueIndex value = operation.inputs[position];
    const ConstantId constant = constant_of_[static_cast<size_t>(value)];
    if (constant.is_none()) return;
    Mark(constant, UseOf(operation, position, model_.value(value).dims));
  }

  // The first use counts.
  void Mark(ConstantId id, const Use& use) {
    StepConstant& constant = step_.constants[step_.constants[id].root];
    if (constant.producer < 0) {
      if (constant.use != ParameterUse::kOther || !constant.is_trained) return;
      constant.use = use.use;
      constant.fan_in = use.fan_in;
      return;
    }
    const ConstantOp& op = step_.constant_ops[static_cast<size_t>(constant.producer)];
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.spec.inputs[i].has_gradient) Mark(op.inputs[i], use);
    }
  }

  // Indices come from the batch or from the file, perhaps reshaped, cast, or cut on the way.
  void BoundIndices(const Operation& operation) {
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
      const Value& value = model_.value(at);
      if (value.source != Value::Source::kOperation) return;
      const Operation& producer = model_.operations[static_cast<size_t>(value.producer)];
      if (!IsMovement(producer.type())) return;
      at = producer.input(0);
    }
  }

  static bool IsMovement(std::string_view type) {
    constexpr std::string_view kMovements[] = {"Cast",      "Reshape",   "Flatten", "Squeeze",
                                               "Unsqueeze", "Transpose", "Slice",   "Identity",
                                               "Expand",    "Concat"};
    return std::find(std::begin(kMovements), std::end(kMovements), type) != std::end(kMovements);
  }

  void SetBound(ValueIndex value, int64_t bound) {
    const auto narrow = [bound](int64_t& known) {
      known = known == 0 ? bound : std::min(known, bound);
    };
    const ConstantId constant = constant_of_[static_cast<size_t>(value)];
    if (!constant.is_none()) narrow(step_.constants[step_.constants[constant].root].index_bound);
    for (StepInput& input : step_.inputs) {
      if (input.name == model_.value(value).name) narrow(input.index_bound);
    }
  }

  const Model::Impl& model_;
  const ModelFacts& facts_;
  const std::vector<ConstantId>& constant_of_;
  StepGraph& step_;
};

}  // namespace

void FindUses(const Model::Impl& model, const ModelFacts& facts,
              const std::vector<ConstantId>& constant_of, StepGraph& step) {
  UseFinder(model, facts, constant_of, step).Find();
}

}  // namespace ckplan
