#include "lib/files/model/parameters.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/files/model/facts.h"
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
  // Indices come from the batch or from the file, and may be reshaped, cast, or cut: the values
  // they are computed from have the same bound.
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

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

// Returns the part after the last slash, without TensorFlow's ":0".
std::string_view LastPart(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos && IsNumber(name.substr(colon + 1))) {
    name = name.substr(0, colon);
  }
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0.
}

// True for names such as "onnx::Mul_12", which PyTorch's older exporter gives to unnamed values.
bool IsNumbered(std::string_view name) {
  const size_t end = name.rfind('_');
  return name.starts_with("onnx::") && end != std::string_view::npos &&
         IsNumber(name.substr(end + 1));
}

bool IsNameOfConstant(std::string_view name) {
  if (IsNumber(name) || IsNumbered(name) || name.starts_with("ortshared_")) return true;
  if (name.starts_with("val_") && IsNumber(name.substr(4))) return true;
  const std::string_view last = LastPart(name);
  const bool is_operand = name.find('/') != std::string_view::npos && (last == "x" || last == "y");
  const std::string lower = LowerCase(last);
  return is_operand || lower.find("const") != std::string::npos ||
         lower.find("cst") != std::string::npos;
}

}  // namespace

bool IsPlainNumber(const ModelValue& value) {
  return value.source == ModelValue::Source::kInitializer && ElementCount(value.dims) == 1 &&
         IsNameOfConstant(value.name);
}

namespace {

class ParameterLister {
 public:
  ParameterLister(const Model::Impl& model, const ModelFacts& facts,
                  const std::vector<NodeId>& node_of_operation)
      : model_(model),
        facts_(facts),
        node_of_operation_(node_of_operation),
        place_(model.values.size(), kNone),
        visitor_(model.values.size(), kNone) {}

  std::vector<Parameter> List() {
    for (const ValueIndex counted : facts_.counted) Add(counted);
    for (const ValueIndex trained : facts_.trained) {
      parameters_[static_cast<size_t>(PlaceOf(trained))].kind = Parameter::Kind::kTrained;
    }
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      PollStop();
      if (!node_of_operation_[i].is_none()) AddReader(static_cast<int32_t>(i));
    }
    return std::move(parameters_);
  }

 private:
  static constexpr int32_t kNone = -1;

  int32_t PlaceOf(ValueIndex value) const { return place_[static_cast<size_t>(value)]; }

  void Add(ValueIndex counted) {
    const ModelValue& value = model_.value(counted);
    place_[static_cast<size_t>(counted)] = static_cast<int32_t>(parameters_.size());
    Parameter parameter;
    parameter.name = value.name;
    parameter.kind = value.is_frozen ? Parameter::Kind::kFrozen : Parameter::Kind::kBuffer;
    parameter.bytes = value.bytes;
    parameter.elements = ElementCount(value.dims).value_or(0);
    parameter.rows = value.dims.empty() ? 1 : value.dims.front();
    parameters_.push_back(std::move(parameter));
  }

  void AddReader(int32_t operation) {
    std::vector<ValueIndex> pending;
    const auto visit_all = [&pending](const std::vector<ValueIndex>& inputs) {
      for (const ValueIndex input : inputs) {
        if (input != kNoValue) pending.push_back(input);
      }
    };
    visit_all(model_.operations[static_cast<size_t>(operation)].inputs);
    while (!pending.empty()) {
      const ValueIndex at = pending.back();
      pending.pop_back();
      int32_t& visitor = visitor_[static_cast<size_t>(at)];
      if (facts_.value(at).is_batch || visitor == operation) continue;
      visitor = operation;
      const ModelValue& value = model_.value(at);
      if (const int32_t place = PlaceOf(at); place != kNone) {
        parameters_[static_cast<size_t>(place)].readers.push_back(
            node_of_operation_[static_cast<size_t>(operation)]);
      } else if (value.source == ModelValue::Source::kOperation) {
        visit_all(model_.operations[static_cast<size_t>(value.producer)].inputs);
      }
    }
  }

  const Model::Impl& model_;
  const ModelFacts& facts_;
  const std::vector<NodeId>& node_of_operation_;
  std::vector<Parameter> parameters_;
  std::vector<int32_t> place_;    // By value: its position in the list.
  std::vector<int32_t> visitor_;  // By value: the last operation from which it was reached.
};

}  // namespace

std::vector<Parameter> ListParameters(const Model::Impl& model, const ModelFacts& facts,
                                      const std::vector<NodeId>& node_of_operation) {
  return ParameterLister(model, facts, node_of_operation).List();
}

}  // namespace ckplan
