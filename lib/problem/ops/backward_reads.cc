#include "lib/problem/ops/backward_reads.h"

#include <algorithm>
#include <string>

#include "lib/problem/ops/op_checks.h"
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
    if (spec_.Has(kHintedInputs)) return ReadsByHint();
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
  // For an operator in place, PyTorch saves the output if it suffices for the gradient, otherwise a
  // copy of the input, which has the same size.
  uint16_t Letters() const {
    const bool output_suffices = rule_.minimal_reads == reads::Y;
    return IsInPlace(spec_) && output_suffices ? reads::Y : rule_.reads(autograd_);
  }

  // The user's description of an unknown operator.
  BackwardReads ReadsByHint() {
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

  bool NeedsGradientOf(size_t input) const { return spec_.input(input).has_gradient; }

  void Read(size_t input) {
    if (spec_.input(input).is_present) is_read_[input] = true;
  }

  bool IsFloatInput(size_t input) const {
    return spec_.inputs[input].is_present && IsFloat(spec_.inputs[input].model_type());
  }

  void ReadFloats() {
    // The saved probabilities already include the attention mask.
    const bool skips_mask =
        rule_.statistic == Statistic::kAttention && autograd_ == Autograd::kMinimal;
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (IsFloatInput(i) && !(skips_mask && i == 3)) Read(i);
    }
  }

  void ReadIntegers() {
    for (size_t i = 0; i < is_read_.size(); ++i) {
      if (!IsFloatInput(i)) Read(i);
    }
  }

  // The rule for products: the gradient of one factor is computed from the other factors.
  void ReadPartners() {
    const size_t inputs = spec_.inputs.size();
    const size_t count = rule_.has(traits::kAllPartners) ? inputs : std::min<size_t>(2, inputs);
    for (size_t i = 0; i < count; ++i) {
      for (size_t other = 0; other < count; ++other) {
        if (other != i && NeedsGradientOf(other)) Read(i);
      }
    }
  }

  // PyTorch's reflection_pad and replication_pad save their input without needing it.
  void ReadForPadding() {
    const std::string mode = spec_.String("mode", "constant");
    if (IsTorch(autograd_) && (mode == "reflect" || mode == "edge")) Read(0);
  }

  // y = a / b: da = g / b; db = -g y / b. PyTorch computes db as -g a / b² instead.
  void ReadForQuotient() {
    if (NeedsGradientOf(0) || NeedsGradientOf(1)) Read(1);
    if (!NeedsGradientOf(1)) return;
    if (IsTorch(autograd_)) {
      Read(0);
    } else {
      reads_.outputs.push_back(0);
    }
  }

  // y = a ^ b: da = g b a^(b-1); db = g y log a.
  void ReadForPower() {
    if (NeedsGradientOf(0) || NeedsGradientOf(1)) Read(1);
    Read(0);
    if (NeedsGradientOf(1)) reads_.outputs.push_back(0);
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

namespace {

constexpr int64_t kScaleBytes = 4;
constexpr int64_t kIndexBytes = 8;
constexpr int64_t kNarrowIndexBytes = 4;

class StatisticCounter {
 public:
  StatisticCounter(const OpSpec& spec, Autograd autograd, const std::vector<bool>& is_stored)
      : spec_(spec),
        x_(spec.input(0)),
        y_(spec.output(0).is_present ? spec.output(0) : spec.input(0)),
        is_torch_(IsTorch(autograd)),
        has_byte_mask_(HasByteMask(spec, autograd)),
        is_stored_(is_stored) {}

  // Returns a statistic of 0 bytes if forward saves nothing.
  SavedStatistic Count(Statistic statistic) const {
    switch (statistic) {
      case Statistic::kNone:
        break;
      case Statistic::kChannelMoments:
        return Saved("moments", {kMomentBytes, DimAt(x_, 1)});
      case Statistic::kRowMoments:
        return Saved("moments", {kMomentBytes, CountNormalisedRows()});
      case Statistic::kRowScale:
        return Saved("scale", {kScaleBytes, CountNormalisedRows()});
      case Statistic::kInstanceMoments:
        return Saved("moments", {kMomentBytes, DimAt(x_, 0), DimAt(x_, 1)});
      case Statistic::kGroupMoments:
        return Saved("moments", {kMomentBytes, DimAt(x_, 0), spec_.Int("num_groups", 1)});
      case Statistic::kPoolIndices:
        return Indices(is_torch_ ? kIndexBytes : kNarrowIndexBytes);
      case Statistic::kTopIndices:
        return Indices(kIndexBytes);
      case Statistic::kDropoutMask:
        return Saved("mask", {DropoutBytes()});
      case Statistic::kLstmReserve:
        return Reserve(5);
      case Statistic::kGruReserve:
        return Reserve(4);
      case Statistic::kRnnReserve:
        return Reserve(0);
      case Statistic::kAttention:
        return Attention();
      case Statistic::kLogSums:
        return LogSums();
    }
    return {};
  }

 private:
  static SavedStatistic Saved(std::string_view suffix, std::initializer_list<int64_t> factors) {
    return {suffix, Bytes(SaturatingProduct(factors))};
  }

  bool IsStored(size_t output) const { return output < is_stored_.size() && is_stored_[output]; }

  // Returns the bytes of one number of type OpSpec::saved_type, at least 1.
  int64_t SavedElementBytes() const { return std::max<int64_t>(1, BitsOf(spec_.saved_type) / 8); }

  // Returns the number of rows of a normalisation over the axes from attribute `axis` to the last.
  int64_t CountNormalisedRows() const {
    const auto rank = static_cast<int64_t>(x_.dims.size());
    int64_t axis = spec_.Int("axis", -1);
    if (axis < 0) axis += rank;
    axis = std::clamp<int64_t>(axis, 0, rank);
    int64_t rows = 1;
    for (size_t i = 0; i < static_cast<size_t>(axis); ++i) {
      rows = SaturatingProduct({rows, x_.dims[i]});
    }
    return rows;
  }

  // On a GPU the mask has one byte per element. On the CPU, and in place, PyTorch saves a factor of
  // the output's type per element: 0 or 1 / (1 - ratio).
  int64_t DropoutBytes() const {
    if (has_byte_mask_) return CountElements(y_);
    return is_torch_ ? CountBytes(y_) : 0;
  }

  SavedStatistic Indices(int64_t index_bytes) const {
    return Saved("indices", {IsStored(1) ? 0 : index_bytes, CountElements(y_)});
  }

  // Counts `vectors` vectors of the hidden size per direction, step and sample, plus the hidden
  // state if the operator's output of all hidden states is not stored.
  SavedStatistic Reserve(int64_t vectors) const {
    const RecurrentSizes sizes = CountRecurrent(spec_);
    return Saved("reserve", {sizes.directions, sizes.steps, sizes.batch, sizes.hidden,
                             vectors + (IsStored(0) ? 0 : 1), SavedElementBytes()});
  }

  SavedStatistic Attention() const {
    const AttentionSizes sizes = CountAttention(spec_);
    if (is_torch_) return LogSums();
    return Saved("probabilities",
                 {sizes.batch, sizes.heads, sizes.queries, sizes.keys, SavedElementBytes()});
  }

  SavedStatistic LogSums() const {
    const AttentionSizes sizes = CountAttention(spec_);
    return Saved("logsumexp", {sizes.batch, sizes.heads, sizes.queries, kScaleBytes});
  }

  const OpSpec& spec_;
  const Operand& x_;
  const Operand& y_;
  bool is_torch_;
  bool has_byte_mask_;
  const std::vector<bool>& is_stored_;
};

}  // namespace

std::optional<SavedStatistic> StatisticOf(const OpSpec& spec, Autograd autograd,
                                          const std::vector<bool>& is_stored) {
  if (!spec.input(0).is_present) return std::nullopt;
  const Statistic statistic = RuleOf(spec.type).statistic;
  const SavedStatistic saved = StatisticCounter(spec, autograd, is_stored).Count(statistic);
  if (saved.bytes == Bytes(0)) return std::nullopt;
  return saved;
}

bool HasByteMask(const OpSpec& spec, Autograd autograd) {
  return autograd == Autograd::kTorchCuda && !IsInPlace(spec);
}

bool OutputServesAsStatistic(const OpSpec& spec) {
  const Statistic statistic = RuleOf(spec.type).statistic;
  return spec.output(1).is_present &&
         (statistic == Statistic::kPoolIndices || statistic == Statistic::kTopIndices);
}

}  // namespace ckplan
