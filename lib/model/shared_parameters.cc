#include "lib/model/shared_parameters.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace ckplan {
namespace {

// Disjoint sets of values that can be merged; each is represented by one of its members.
class ValueSets {
 public:
  explicit ValueSets(size_t values) : parent_(values) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  ValueIndex Find(ValueIndex value) {
    while (Parent(value) != value) {
      Parent(value) = Parent(Parent(value));
      value = Parent(value);
    }
    return value;
  }
  void Merge(ValueIndex a, ValueIndex b) { Parent(Find(b)) = Find(a); }

 private:
  ValueIndex& Parent(ValueIndex value) { return parent_[static_cast<size_t>(value)]; }
  std::vector<ValueIndex> parent_;
};

// Groups each weight with all values computed from it before the step.
ValueSets WeightsOf(const Model::Impl& model, const ModelFacts& facts) {
  ValueSets sets(model.values.size());
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const ModelOperation& operation = model.operations[i];
    if (facts.operations[i].is_batch || operation.output(0) == kNoValue) continue;
    for (const auto* list : {&operation.inputs, &operation.outputs}) {
      for (const ValueIndex value : *list) {
        if (value == kNoValue || facts.value(value).is_batch) continue;
        const ValueFacts& own = facts.value(value);
        if (own.may_be_trained || own.is_literal) sets.Merge(operation.outputs[0], value);
      }
    }
  }
  return sets;
}

}  // namespace

std::vector<std::vector<int32_t>> FindSharedParameters(const Model::Impl& model,
                                                       const ModelFacts& facts) {
  ValueSets weights = WeightsOf(model, facts);
  std::vector<std::set<ValueIndex>> trained(model.operations.size());
  std::map<ValueIndex, int> users;
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const OperationFacts& own = facts.operations[i];
    if (!own.is_live || !own.has_backward) continue;
    for (size_t k = 0; k < own.reads_trained.size(); ++k) {
      if (own.reads_trained[k]) trained[i].insert(weights.Find(model.operations[i].inputs[k]));
    }
    for (const ValueIndex weight : trained[i]) ++users[weight];
  }
  std::map<ValueIndex, int32_t> numbers;
  std::vector<std::vector<int32_t>> shared(model.operations.size());
  for (size_t i = 0; i < model.operations.size(); ++i) {
    for (const ValueIndex weight : trained[i]) {
      if (users.at(weight) == 1) continue;
      const auto next = static_cast<int32_t>(numbers.size());
      shared[i].push_back(numbers.try_emplace(weight, next).first->second);
    }
    std::sort(shared[i].begin(), shared[i].end());
  }
  return shared;
}

}  // namespace ckplan
