// What recognizing operators by their form shares: producers of a type, numbers, new nodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/model/attention_pattern.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

class OperationPatterns {
 public:
  explicit OperationPatterns(const Model::Impl& model)
      : model_(model), facts_(FindFacts(model)), readers_(model, facts_) {}

  const Model::Impl& model() const { return model_; }
  const ModelFacts& facts() const { return facts_; }
  const ValueReaders& readers() const { return readers_; }

  const Dims& DimsOf(ValueIndex value) const { return model_.value(value).dims; }

  size_t IndexOf(const ModelOperation& operation) const {
    return static_cast<size_t>(&operation - model_.operations.data());
  }

  // Returns the operation that produces the value, if it has this type.
  const ModelOperation* ProducerOfType(ValueIndex value, std::string_view type) const {
    if (value == kNoValue || model_.value(value).source != ModelValue::Source::kOperation) {
      return nullptr;
    }
    const auto& producer = model_.operations[static_cast<size_t>(model_.value(value).producer)];
    return producer.is_standard() && producer.type() == type ? &producer : nullptr;
  }

  // Like ProducerOfType, for a value that only the operation `reader` reads.
  const ModelOperation* OwnProducer(ValueIndex value, std::string_view type, size_t reader) const {
    const ModelOperation* producer = ProducerOfType(value, type);
    return producer != nullptr && readers_.OnlyOf(value) == reader ? producer : nullptr;
  }

  // Exporters round numbers to float32.
  static constexpr double kTolerance = 1e-4;
  static bool IsNear(double number, double expected) {
    return std::abs(number - expected) <= kTolerance * std::abs(expected);
  }
  bool IsNumber(ValueIndex value, double number) const {
    if (value == kNoValue) return false;
    const auto known = KnownNumber(model_, value);
    return known && IsNear(*known, number);
  }

  // True if all elements of a known constant are this number.
  bool HoldsOnly(ValueIndex value, double number) const {
    const ConstantValue* constant =
        value == kNoValue ? nullptr : model_.value(value).constant.get();
    if (constant == nullptr || !constant->is_float()) return false;
    return std::all_of(constant->reals.begin(), constant->reals.end(),
                       [number](double element) { return element == number; });
  }

  // True if the value is constant during a step and has one element per channel.
  bool IsOfChannels(ValueIndex value, const Dims& x) const {
    if (value == kNoValue || facts_.value(value).is_batch) return false;
    const Dims& dims = DimsOf(value);
    const size_t missing = x.size() - std::min(x.size(), dims.size());
    if (dims.size() > x.size() || missing > 1) return false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != (i + missing == 1 ? x[1] : 1)) return false;
    }
    return true;
  }

  // Returns the axes of a reduction, ascending; nullopt if they are unknown.
  std::optional<std::vector<int64_t>> AxesOf(const ModelOperation& reduction) const {
    std::vector<int64_t> axes = IntsAttribute(*reduction.node, "axes");
    if (reduction.input(1) != kNoValue) {
      const ConstantValue* known = model_.value(reduction.inputs[1]).constant.get();
      if (known == nullptr) return std::nullopt;
      axes = known->ints;
    }
    const auto rank = static_cast<int64_t>(DimsOf(reduction.inputs[0]).size());
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::sort(axes.begin(), axes.end());
    return axes;
  }

 private:
  const Model::Impl& model_;
  const ModelFacts facts_;
  const ValueReaders readers_;
};

inline onnx::NodeProto NodeOfType(std::string_view type) {
  onnx::NodeProto node;
  node.set_op_type(std::string(type));
  return node;
}

inline onnx::AttributeProto& AddAttribute(onnx::NodeProto& node, std::string_view name,
                                          onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}

inline void SetInt(onnx::NodeProto& node, std::string_view name, int64_t value) {
  AddAttribute(node, name, onnx::AttributeProto::INT).set_i(value);
}

inline void SetFloat(onnx::NodeProto& node, std::string_view name, double value) {
  AddAttribute(node, name, onnx::AttributeProto::FLOAT).set_f(static_cast<float>(value));
}

inline void SetString(onnx::NodeProto& node, std::string_view name, std::string_view value) {
  AddAttribute(node, name, onnx::AttributeProto::STRING).set_s(std::string(value));
}

}  // namespace ckplan
