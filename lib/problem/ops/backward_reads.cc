#include "lib/problem/ops/backward_reads.h"

#include <algorithm>
#include <string>

#include "lib/problem/ops/in_place.h"
#include "lib/problem/ops/op_hint.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

class ReadFinder {
 public:
  ReadFinder(const OpSpec& spec, Autograd autograd)
      : spec_(spec),
        rule_(RuleOf(spec.type)),
        autograd_(autograd),
        is_read_(spec.inputs.size(), false) {}

  BackwardReads Find() {
    if (spec_.Has(kHintedInputs)) return AsHinted();
    const uint16_t letters = Letters();
    if ((letters & reads::X) != 0) Read(0);
    if ((letters & reads::V) != 0) ReadFloats();
    if ((letters & reads::I) != 0) ReadIntegers();
    if ((letters & reads::P) != 0) ReadPartners();
    if (spec_.type == "Pad") ReadForPadding();
    if ((letters & reads::Q) != 0) ReadForQuotient();
    if ((letters & reads::E) != 0) ReadForPower();
    if ((letters & reads::Y) != 0) reads_.outputs.push_back(0);
    if ((letters & reads::Z) != 0) {
      for (size_t i = 0; i < spec_.outputs.size(); ++i) reads_.outputs.push_back(i);
    }
    reads_.statistic = (letters & reads::S) != 0;
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (is_read_[i]) reads_.inputs.push_back(i);
    }
    return std::move(reads_);
  }

 private:
  // In place, PyTorch saves the output if the gradient follows from that, and otherwise a copy of
  // the input, which is as large.
  uint16_t Letters() const {
    const bool is_told_by_output = rule_.minimal_reads == reads::Y;
    return IsInPlace(spec_) && is_told_by_output ? reads::Y : rule_.reads(autograd_);
  }

  // What the user says of an unknown operator.
  BackwardReads AsHinted() {
    for (const int64_t input : spec_.Ints(kHintedInputs)) {
      const auto at = static_cast<size_t>(input);
      if (spec_.input(at).is_present) reads_.inputs.push_back(at);
    }
    for (const int64_t output : spec_.Ints(kHintedOutputs)) {
      const auto at = static_cast<size_t>(output);
      if (spec_.output(at).is_present) reads_.outputs.push_back(at);
    }
    return std::move(reads_);
  }

  bool Wants(size_t input) const { return spec_.input(input).has_gradient; }

  void Read(size_t input) {
    if (spec_.input(input).is_present) is_read_[input] = true;
  }

  bool HoldsFloats(size_t input) const {
    return spec_.inputs[input].is_present && IsFloat(spec_.inputs[input].model_type());
  }

  void ReadFloats() {
    // The saved probabilities already include the attention mask.
    const bool leaves_mask =
        rule_.statistic == Statistic::kAttention && autograd_ == Autograd::kMinimal;
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (HoldsFloats(i) && !(leaves_mask && i == 3)) Read(i);
    }
  }

  void ReadIntegers() {
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (!HoldsFloats(i)) Read(i);
    }
  }

  // The rule for products: the gradient of one factor is computed from the other factors.
  void ReadPartners() {
    const size_t inputs = spec_.inputs.size();
    const size_t count = rule_.has(traits::kAllPartners) ? inputs : std::min<size_t>(2, inputs);
    for (size_t i = 0; i < count; ++i) {
      for (size_t other = 0; other < count; ++other) {
        if (other != i && Wants(other)) Read(i);
      }
    }
  }

  // PyTorch's reflection_pad and replication_pad save their input, but nothing of it is needed.
  void ReadForPadding() {
    const std::string mode = spec_.String("mode", "constant");
    if (IsTorch(autograd_) && (mode == "reflect" || mode == "edge")) Read(0);
  }

  // y = a / b: da = g / b; db = -g y / b. PyTorch computes db as -g a / b² instead.
  void ReadForQuotient() {
    if (Wants(0) || Wants(1)) Read(1);
    if (!Wants(1)) return;
    if (IsTorch(autograd_)) {
      Read(0);
    } else {
      reads_.outputs.push_back(0);
    }
  }

  // y = a ^ b: da = g b a^(b-1); db = g y log a.
  void ReadForPower() {
    if (Wants(0) || Wants(1)) Read(1);
    Read(0);
    if (Wants(1)) reads_.outputs.push_back(0);
  }

  const OpSpec& spec_;
  const OpRule& rule_;
  Autograd autograd_;
  std::vector<bool> is_read_;
  BackwardReads reads_;
};

}  // namespace

BackwardReads FindBackwardReads(const OpSpec& spec, Autograd autograd) {
  return ReadFinder(spec, autograd).Find();
}

}  // namespace ckplan
