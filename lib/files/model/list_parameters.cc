#include "lib/files/model/list_parameters.h"

#include "lib/base/stop.h"

namespace ckplan {
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
