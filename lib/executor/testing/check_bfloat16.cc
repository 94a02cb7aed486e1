#include "lib/executor/testing/check_bfloat16.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/base/rng.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/bfloat16.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan::reference {

namespace {

// Rounding to 8 significant bits changes a number by at most this fraction.
constexpr double kRounding = 1.0 / 256;
// The allowed difference between the runs, in roundings of the tensor's largest number (or of 1, if
// that is larger), because a sum of large cancelling terms has their rounding error. One rounding
// is for the stored number. Two more allow for a rounded output that backward reads, since a
// formula in y may have the slope of y^2 (Tan, Reciprocal). A wrong element, or one byte read
// wrongly, differs by far more than these 1.2 %.
constexpr double kRoundings = 3;
// A recurrent network reads its own rounded state at every step.
constexpr double kRecurrentRoundings = 6;

// Permutes a four-axis tensor's values from [N, C, H, W] to [N, H, W, C], or back. The dimensions
// stay.
enum class Reordering { kToChannelsLast, kToModel };
Tensor Reordered(Tensor tensor, Reordering to) {
  const std::vector<double> values = tensor.values;
  const int64_t channels = tensor.dims[1];
  const int64_t positions = tensor.dims[2] * tensor.dims[3];
  for (int64_t n = 0; n < tensor.dims[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < positions; ++i) {
        const int64_t of_model = (n * channels + c) * positions + i;
        const int64_t last = (n * positions + i) * channels + c;
        const bool is_back = to == Reordering::kToModel;
        tensor[is_back ? of_model : last] = values[static_cast<size_t>(is_back ? last : of_model)];
      }
    }
  }
  return tensor;
}

Tensor Rounded(Tensor tensor) {
  for (double& value : tensor.values) {
    value = static_cast<double>(FromBFloat16(ToBFloat16(static_cast<float>(value))));
  }
  return tensor;
}

// Which tensors are channels-last.
enum class Marked { kAll, kInput, kOutput };

// All results of one run.
struct RunResults {
  ForwardResult forward;
  BackwardResult backward;
};

class Comparison {
 public:
  Comparison(Backend& backend, const CaseRow& row, uint64_t seed)
      : backend_(backend), case_(ParseCase(row)), seed_(seed), wide_(case_.spec) {}

  std::vector<std::string> Check() {
    if (!DependsOnBatch()) return {};
    SetRoles();
    return Compare();
  }

  // Compares with the first input, the first output, or all tensors channels-last.
  std::vector<std::string> CheckChannelsLast(Marked marked) {
    if (!DependsOnBatch()) return {};
    SetRoles();
    if (!Mark(marked)) return {};
    return Compare();
  }

 private:
  std::vector<std::string> Compare() {
    Fill();
    const std::optional<RunResults> wide = Run(wide_, wide_inputs_, wide_gradients_, "as float32");
    const std::optional<RunResults> narrow = Run(described_, narrow_inputs_, narrow_gradients_, "");
    if (wide && narrow) Compare(*wide, *narrow);
    return std::move(faults_);
  }

  void Fail(const std::string& what) {
    faults_.push_back(
        fmt::format("{} [seed {}], as bfloat16{}: {}", case_.text, seed_, order_, what));
  }

  // Marks operands of the narrow run. Returns false if the backend doesn't support this order.
  bool Mark(Marked marked) {
    const ElementOrders orders = backend_.OrdersOf(narrow_);
    if (orders == ElementOrders::kOfModel) return false;
    if (orders == ElementOrders::kAlike && marked != Marked::kAll) return false;
    bool is_any = false;
    const auto mark = [&](Operand& operand, bool is_meant) {
      if (!operand.is_present || HasOneOrder(operand.dims)) return true;
      if (orders == ElementOrders::kAlike && operand.dims.size() != 4) return false;
      operand.is_channels_last = is_meant;
      is_any = is_any || is_meant;
      return true;
    };
    const bool is_each = orders == ElementOrders::kEach;
    for (size_t i = 0; i < narrow_.inputs.size(); ++i) {
      const bool is_meant = !is_each || (i == 0 && marked != Marked::kOutput);
      if (!mark(narrow_.inputs[i], is_meant)) return false;
    }
    for (size_t i = 0; i < narrow_.outputs.size(); ++i) {
      const bool is_meant = !is_each || (i == 0 && marked != Marked::kInput);
      if (!mark(narrow_.outputs[i], is_meant)) return false;
    }
    order_ = fmt::format(", channels last ({})", static_cast<int>(marked));
    described_ = !is_each && HasStoredOrder(narrow_) ? InStoredOrder(narrow_) : narrow_;
    return is_any;
  }

  static Tensor ToMemory(Tensor tensor, const Operand& operand) {
    if (!operand.is_channels_last || !tensor.is_present) return tensor;
    return Reordered(std::move(tensor), Reordering::kToChannelsLast);
  }
  static Tensor ToModel(Tensor tensor, const Operand& operand) {
    if (!operand.is_channels_last || tensor.values.empty()) return tensor;
    return Reordered(std::move(tensor), Reordering::kToModel);
  }

  // Results computed only from constants are constants too, so they are float32 whatever the type
  // of the activations.
  bool DependsOnBatch() const {
    const auto& inputs = case_.spec.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_present && !case_.contents[i].is_constant) return true;
    }
    return false;
  }

  bool IsStoredNarrow(size_t input) const {
    const Operand& operand = case_.spec.inputs[input];
    return operand.is_present && IsFloat(operand.type) && !case_.contents[input].is_constant;
  }

  void SetRoles() {
    std::vector<bool> needs_gradient;
    std::vector<bool> is_constant;
    std::vector<bool> arrives;
    for (const Operand& output : wide_.outputs) {
      arrives.push_back(output.is_present && IsFloat(output.type));
    }
    const bool has_float = std::find(arrives.begin(), arrives.end(), true) != arrives.end();
    for (size_t i = 0; i < wide_.inputs.size(); ++i) {
      needs_gradient.push_back(has_float && case_.contents[i].needs_gradient &&
                               IsDifferentiable(wide_, i));
      is_constant.push_back(case_.contents[i].is_constant);
    }
    needs_any_gradient_ =
        std::find(needs_gradient.begin(), needs_gradient.end(), true) != needs_gradient.end();
    if (!needs_any_gradient_) arrives.assign(arrives.size(), false);
    SetGradientRoles(wide_, needs_gradient, is_constant, arrives);
    narrow_ = wide_;
    for (size_t i = 0; i < narrow_.inputs.size(); ++i) {
      if (IsStoredNarrow(i)) narrow_.inputs[i].type = ElementType::kBFloat16;
    }
    for (Operand& output : narrow_.outputs) {
      if (output.is_present && IsFloat(output.type)) output.type = ElementType::kBFloat16;
    }
    described_ = narrow_;
  }

  void Fill() {
    wide_inputs_ = FillInputs(case_, seed_);
    for (size_t i = 0; i < wide_inputs_.size(); ++i) {
      if (IsStoredNarrow(i)) wide_inputs_[i] = Rounded(std::move(wide_inputs_[i]));
      narrow_inputs_.push_back(ToMemory(wide_inputs_[i], narrow_.inputs[i]));
      narrow_inputs_.back().type = narrow_.inputs[i].type;
    }
    Rng rng(seed_ ^ 0xBF16);
    for (size_t i = 0; i < wide_.outputs.size(); ++i) {
      const Operand& output = wide_.outputs[i];
      wide_gradients_.push_back(output.has_gradient ? Rounded(RandomGradient(output, rng))
                                                    : Tensor());
      narrow_gradients_.push_back(ToMemory(wide_gradients_.back(), narrow_.outputs[i]));
      narrow_gradients_.back().type = narrow_.outputs[i].type;
    }
  }

  std::optional<RunResults> Run(const OpSpec& spec, const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& gradients, const std::string& how) {
    const auto fail_all = [&](const std::vector<std::string>& faults) {
      for (const std::string& fault : faults) Fail(how + (how.empty() ? "" : ": ") + fault);
    };
    auto prepared = backend_.Prepare(spec);
    if (!prepared.ok()) {
      fail_all({prepared.error().message});
      return std::nullopt;
    }
    PreparedOp& op = **prepared;
    RunResults made;
    made.forward = RunForward(backend_, op, spec, inputs, seed_);
    fail_all(made.forward.faults);
    CheckForwardAgain(op, spec, inputs, made.forward);
    if (!needs_any_gradient_) return made;
    made.backward = RunBackward(backend_, op, spec, inputs, made.forward, gradients, seed_);
    fail_all(made.backward.faults);
    const BackwardResult again =
        RunBackward(backend_, op, spec, inputs, made.forward, gradients, seed_);
    if (again.gradients != made.backward.gradients) Fail("a second backward differs");
    return made;
  }

  void CheckForwardAgain(PreparedOp& op, const OpSpec& spec, const std::vector<Tensor>& inputs,
                         const ForwardResult& forward) {
    const ForwardResult again = RunForward(backend_, op, spec, inputs, seed_);
    if (again.outputs != forward.outputs || again.statistic != forward.statistic) {
      Fail("a second forward differs");
    }
    if (spec.statistic_bytes > 0 && spec.outputs.size() == 1) {
      const ForwardResult alone = RunForward(backend_, op, spec, inputs, seed_, 0);
      for (const std::string& fault : alone.faults) Fail("the statistic alone: " + fault);
      if (HasPositions() && alone.statistic != forward.statistic) {
        Fail("the positions differ where the output is not wanted");
      }
      if (!HasPositions()) CompareStatistics(forward.statistic, alone.statistic);
    }
    if (!RuleOf(spec.type).is_elementwise() || spec.outputs[0].bytes() == 0) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Operand& input = spec.inputs[i];
      if (input.type != spec.outputs[0].type || input.dims != spec.outputs[0].dims) continue;
      if (!inputs[i].is_present) continue;
      const ForwardResult in_place =
          RunForward(backend_, op, spec, inputs, seed_, -1, static_cast<int64_t>(i));
      if (in_place.outputs[0] != forward.outputs[0]) {
        Fail(fmt::format("the result in place of input {} differs", i));
      }
    }
  }

  void Compare(const RunResults& wide, const RunResults& narrow) {
    for (size_t i = 0; i < wide_.outputs.size(); ++i) {
      if (!wide_.outputs[i].is_present) continue;
      CompareValues(
          ToModel(FromBytes(narrow.forward.outputs[i], narrow_.outputs[i]), narrow_.outputs[i]),
          FromBytes(wide.forward.outputs[i], wide_.outputs[i]), fmt::format("output {}", i));
    }
    CompareStatistics(wide.forward.statistic, narrow.forward.statistic);
    for (size_t i = 0; i < wide_.inputs.size(); ++i) {
      if (!wide_.inputs[i].has_gradient) continue;
      CompareValues(
          ToModel(FromBytes(narrow.backward.gradients[i], narrow_.inputs[i]), narrow_.inputs[i]),
          FromBytes(wide.backward.gradients[i], wide_.inputs[i]),
          fmt::format("the gradient of input {}", i));
    }
  }

  bool HasPositions() const {
    const Statistic statistic = RuleOf(wide_.type).statistic;
    return statistic == Statistic::kPoolIndices || statistic == Statistic::kTopIndices;
  }

  void CompareStatistics(const Blob& wide, const Blob& narrow) {
    if (HasPositions()) {
      // One per output element, in the same order.
      Operand positions{true, ElementType::kInt32, wide_.outputs[0].dims};
      const Tensor expected = FromBytes(wide, positions);
      positions.is_channels_last = narrow_.outputs[0].is_channels_last;
      if (ToModel(FromBytes(narrow, positions), positions).values != expected.values) {
        Fail("the saved positions differ");
      }
      return;
    }
    const Operand floats{true, ElementType::kFloat32, {wide_.statistic_bytes / 4}};
    CompareValues(FromBytes(narrow, floats), FromBytes(wide, floats), "the statistic");
  }

  void CompareValues(const Tensor& narrow, const Tensor& wide, const std::string& what) {
    double largest = 1;
    for (const double value : wide.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    const bool is_recurrent = RuleOf(wide_.type).work == WorkKind::kRnn;
    const double roundings = is_recurrent ? kRecurrentRoundings : kRoundings;
    const double bound = IsFloat(wide.type) ? roundings * kRounding * largest : 0;
    for (int64_t i = 0; i < wide.size(); ++i) {
      const bool agrees = std::isnan(wide[i])
                              ? std::isnan(narrow[i])
                              : narrow[i] == wide[i] || std::abs(narrow[i] - wide[i]) <= bound;
      if (agrees) continue;
      Fail(fmt::format("{}, element {}: {}, and {} as float32, though the largest is {}", what, i,
                       narrow[i], wide[i], largest));
      return;
    }
  }

  Backend& backend_;
  const OpCase case_;
  const uint64_t seed_;
  bool needs_any_gradient_ = false;
  OpSpec wide_;
  OpSpec narrow_;
  OpSpec described_;  // The narrow spec, describing tensors as they lie in memory.
  std::string order_;
  std::vector<Tensor> wide_inputs_;
  std::vector<Tensor> narrow_inputs_;
  std::vector<Tensor> wide_gradients_;
  std::vector<Tensor> narrow_gradients_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> CheckChannelsLast(Backend& backend, const CaseRow& row, uint64_t seed) {
  std::vector<std::string> faults;
  for (const Marked marked : {Marked::kAll, Marked::kInput, Marked::kOutput}) {
    for (std::string& fault : Comparison(backend, row, seed).CheckChannelsLast(marked)) {
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

std::vector<std::string> CheckBFloat16(Backend& backend, const CaseRow& row, uint64_t seed) {
  return Comparison(backend, row, seed).Check();
}

}  // namespace ckplan::reference
