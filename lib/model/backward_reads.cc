#include "lib/model/backward_reads.h"

#include <algorithm>

namespace ckplan {

namespace {

class ReadFinder {
 public:
  ReadFinder(const Model::Impl& model, const ModelFacts& facts, const Operation& operation,
             const OperationFacts& own, Autograd autograd)
      : model_(model),
        operation_(operation),
        own_(own),
        autograd_(autograd),
        is_read_(operation.inputs.size(), false) {
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      wants_.push_back(WantsGradient(model, facts, operation, own, i));
    }
  }

  BackwardReads Find() {
    const OpRule& rule = *own_.rule;
    const uint16_t letters = autograd_ == Autograd::kTorch ? rule.torch_reads : rule.minimal_reads;
    if ((letters & reads::X) != 0) Read(0);
    if ((letters & reads::V) != 0) ReadFloats();
    if ((letters & reads::I) != 0) ReadIntegers();
    if ((letters & reads::P) != 0) ReadPartners();
    if ((letters & reads::D) != 0) ReadSpecial();
    if ((letters & reads::Y) != 0) reads_.outputs.push_back(0);
    if ((letters & reads::Z) != 0) {
      for (size_t i = 0; i < operation_.outputs.size(); ++i) reads_.outputs.push_back(i);
    }
    reads_.statistic = (letters & reads::S) != 0;
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (is_read_[i]) reads_.inputs.push_back(i);
    }
    return std::move(reads_);
  }

 private:
  void Read(size_t input) {
    if (input < is_read_.size() && operation_.inputs[input] != kNoValue) is_read_[input] = true;
  }

  bool IsFloat(size_t input) const {
    const ValueIndex value = operation_.inputs[input];
    return value != kNoValue && IsFloatType(model_.value(value).elem_type);
  }

  void ReadFloats() {
    // The probabilities already know the mask of an attention.
    const bool leaves_mask =
        own_.rule->statistic == Statistic::kAttention && autograd_ == Autograd::kMinimal;
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (IsFloat(i) && !(leaves_mask && i == 3)) Read(i);
    }
  }

  void ReadIntegers() {
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (!IsFloat(i)) Read(i);
    }
  }

  // The product's rule: the gradient of one factor is made of the others.
  void ReadPartners() {
    const bool has_many = own_.rule->type == "Einsum" || own_.rule->kind == OpKind::kRotary;
    const size_t count = has_many ? wants_.size() : std::min<size_t>(2, wants_.size());
    for (size_t i = 0; i < count; ++i) {
      for (size_t other = 0; other < count; ++other) {
        if (other != i && wants_[other]) Read(i);
      }
    }
  }

  // y = a / b: da = g / b; db = -g y / b, or, as PyTorch has it, -g a / b².
  // y = a ^ b: da = g b a^(b-1); db = g y log a.
  void ReadSpecial() {
    const bool wants_first = !wants_.empty() && wants_[0];
    const bool wants_second = wants_.size() > 1 && wants_[1];
    const bool is_division = own_.rule->type == "Div";
    if (wants_first || wants_second) Read(1);
    if (!is_division) Read(0);
    if (!wants_second) return;
    if (is_division && autograd_ == Autograd::kTorch) {
      Read(0);
    } else {
      reads_.outputs.push_back(0);
    }
  }

  const Model::Impl& model_;
  const Operation& operation_;
  const OperationFacts& own_;
  Autograd autograd_;
  std::vector<bool> wants_;
  std::vector<bool> is_read_;
  BackwardReads reads_;
};

}  // namespace

bool WantsGradient(const Model::Impl& model, const ModelFacts& facts, const Operation& operation,
                   const OperationFacts& own, size_t input) {
  if (!IsDifferentiable(model, *own.rule, operation, input)) return false;
  if (own.reads_trained[input]) return true;
  const ValueFacts& value = facts.value(operation.inputs[input]);
  return value.is_batch && value.requires_grad;
}

BackwardReads FindBackwardReads(const Model::Impl& model, const ModelFacts& facts,
                                const Operation& operation, const OperationFacts& own,
                                Autograd autograd) {
  return ReadFinder(model, facts, operation, own, autograd).Find();
}

}  // namespace ckplan
