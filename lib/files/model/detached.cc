#include "lib/files/model/detached.h"

#include <cstddef>
#include <cstdint>

#include "lib/files/model/origin.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

class DetachedFinder {
 public:
  explicit DetachedFinder(const Model::Impl& model)
      : model_(model),
        readers_(model.values.size(), 0),
        last_reader_(model.values.size(), -1),
        left_(model.values.size(), -1),
        is_detached_(model.operations.size(), false) {}

  std::vector<bool> Find() && {
    CountReaders();
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      if (IsStraightThrough(i)) Detach(static_cast<int32_t>(i));
      if (WasDetach(model_.operations[i])) is_detached_[i] = true;
    }
    return std::move(is_detached_);
  }

 private:
  static size_t At(ValueIndex value) { return static_cast<size_t>(value); }

  // PyTorch's exporter writes detach as an Identity.
  bool WasDetach(const ModelOperation& operation) const {
    return operation.type() == "Identity" && OriginOf(model_, operation).Is("aten.detach");
  }

  void CountReaders() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      for (const ValueIndex input : model_.operations[i].inputs) {
        if (input == kNoValue) continue;
        ++readers_[At(input)];
        last_reader_[At(input)] = static_cast<int32_t>(i);
      }
    }
    for (const ValueIndex output : model_.graph_outputs) ++readers_[At(output)];
  }

  // True if the operation is the difference in x + (q - x) or x - (x - q).
  bool IsStraightThrough(size_t index) const {
    const ModelOperation& inner = model_.operations[index];
    const ValueIndex difference = inner.output(0);
    if (inner.type() != "Sub" || !inner.is_standard() || difference == kNoValue) return false;
    if (readers_[At(difference)] != 1 || last_reader_[At(difference)] < 0) return false;
    const ModelOperation& outer =
        model_.operations[static_cast<size_t>(last_reader_[At(difference)])];
    if (!outer.is_standard()) return false;
    const ValueIndex a = outer.input(0);
    const ValueIndex b = outer.input(1);
    if (outer.type() == "Sub") return b == difference && a == inner.input(0);
    const ValueIndex x = a == difference ? b : a;
    return outer.type() == "Add" && x == inner.input(1);
  }

  // Works without recursion, because branches may be long.
  void Detach(int32_t difference) {
    std::vector<int32_t> branch = {difference};
    std::vector<ValueIndex> counted;
    bool rounds = false;
    for (size_t next = 0; next < branch.size(); ++next) {
      const ModelOperation& operation = model_.operations[static_cast<size_t>(branch[next])];
      rounds = rounds || RuleOf(operation.type()).has(traits::kRounds);
      for (const ValueIndex input : operation.inputs) {
        if (input == kNoValue) continue;
        int32_t& left = left_[At(input)];
        if (left < 0) {
          left = readers_[At(input)];
          counted.push_back(input);
        }
        const ModelValue& value = model_.value(input);
        if (--left == 0 && value.source == ModelValue::Source::kOperation &&
            HasOneResult(value.producer)) {
          branch.push_back(value.producer);
        }
      }
    }
    for (const ValueIndex value : counted) left_[At(value)] = -1;
    if (!rounds) return;
    for (const int32_t operation : branch) is_detached_[static_cast<size_t>(operation)] = true;
  }

  bool HasOneResult(int32_t operation) const {
    int results = 0;
    for (const ValueIndex output : model_.operations[static_cast<size_t>(operation)].outputs) {
      results += output != kNoValue && readers_[At(output)] > 0 ? 1 : 0;
    }
    return results == 1;
  }

  const Model::Impl& model_;
  std::vector<int32_t> readers_;      // By value; graph outputs count as a reader.
  std::vector<int32_t> last_reader_;  // By value: an operation, or -1.
  std::vector<int32_t> left_;         // By value: readers outside the branch, or -1 if unknown.
  std::vector<bool> is_detached_;
};

}  // namespace

std::vector<bool> FindDetached(const Model::Impl& model) { return DetachedFinder(model).Find(); }

}  // namespace ckplan
