#include "lib/executor/testing/check_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/base/rng.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan::reference {

namespace {

// Inputs are perturbed by this fraction of their value, and at least by this amount. The error of
// central differences is of the order of its square.
constexpr double kStep = 1e-5;
// How many elements of an input are differenced. Large inputs get fewer, because each difference
// runs the reference twice.
#ifdef CKPLAN_SANITIZED  // Sanitizers check the kernels' memory and slow the references down.
constexpr int64_t kMaxDifferences = 8;
constexpr int64_t kMinDifferences = 1;
#else
constexpr int64_t kMaxDifferences = 300;
constexpr int64_t kMinDifferences = 10;
#endif
constexpr int64_t kMaxDifferencedElements = 300000;

class Checker {
 public:
  Checker(Backend& backend, const CaseRow& row, uint64_t seed)
      : backend_(backend), case_(ParseCase(row)), seed_(seed), rng_(seed ^ 0x5eed) {}

  std::vector<std::string> Check() {
    function_ = FindFunction(case_.spec.type);
    if (function_ == nullptr) {
      Fail("it has no reference");
      return std::move(faults_);
    }
    inputs_ = FillInputs(case_, seed_);
    for (const Contents& contents : case_.contents) is_constant_.push_back(contents.is_constant);
    expected_ = Evaluate(inputs_);
    for (const Operand& operand : case_.spec.outputs) {
      output_gradients_.push_back(RandomGradient(operand, rng_));
    }
    CheckVariants();
    return std::move(faults_);
  }

 private:
  void Fail(const std::string& what) {
    faults_.push_back(
        fmt::format("{} [seed {}, gradients {}]: {}", case_.text, seed_, variant_, what));
  }
  void FailAll(const std::vector<std::string>& faults) {
    for (const std::string& fault : faults) Fail(fault);
  }

  std::vector<Tensor> Evaluate(const std::vector<Tensor>& inputs) const {
    std::vector<Tensor> outputs;
    for (const Operand& operand : case_.spec.outputs) outputs.push_back(EmptyTensor(operand));
    function_(case_.spec, inputs, outputs);
    return outputs;
  }

  void CheckVariants() {
    const auto is_float = [](const Tensor& gradient) { return gradient.is_present; };
    const bool has_float =
        std::any_of(output_gradients_.begin(), output_gradients_.end(), is_float);
    std::vector<bool> all;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      all.push_back(has_float && case_.contents[i].needs_gradient &&
                    IsDifferentiable(case_.spec, i));
    }
    const auto count = std::count(all.begin(), all.end(), true);
    std::vector<bool> arrives;
    for (const Tensor& gradient : output_gradients_) {
      arrives.push_back(gradient.is_present && count > 0);
    }
    CheckVariant(all, arrives);
    for (size_t i = 0; count > 1 && i < all.size(); ++i) {
      if (!all[i]) continue;
      std::vector<bool> alone(all.size(), false);
      alone[i] = true;
      CheckVariant(alone, arrives);
    }
    const auto arriving = std::count(arrives.begin(), arrives.end(), true);
    for (size_t i = 0; arriving > 1 && i < arrives.size(); ++i) {
      if (!arrives[i]) continue;
      std::vector<bool> alone(arrives.size(), false);
      alone[i] = true;
      CheckVariant(all, alone);
    }
  }

  void CheckVariant(const std::vector<bool>& needs_gradient, const std::vector<bool>& arrives) {
    variant_.clear();
    for (const bool is_needed : needs_gradient) variant_ += is_needed ? '1' : '0';
    variant_ += "<-";
    for (const bool arrive : arrives) variant_ += arrive ? '1' : '0';
    OpSpec spec = case_.spec;
    SetGradientRoles(spec, needs_gradient, is_constant_, arrives);
    auto prepared = backend_.Prepare(spec);
    if (!prepared.ok()) return Fail(prepared.error().message);
    PreparedOp& op = **prepared;
    const ForwardResult forward = RunForward(backend_, op, spec, inputs_, seed_);
    FailAll(forward.faults);
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      if (!spec.outputs[i].is_present) continue;
      Compare(FromBytes(forward.outputs[i], spec.outputs[i]), expected_[i],
              fmt::format("output {}", i));
    }
    CheckForwardAgain(op, spec, forward);
    if (std::find(needs_gradient.begin(), needs_gradient.end(), true) != needs_gradient.end()) {
      CheckBackward(op, spec, forward, arrives);
    }
  }

  void CheckForwardAgain(PreparedOp& op, const OpSpec& spec, const ForwardResult& forward) {
    const ForwardResult again = RunForward(backend_, op, spec, inputs_, seed_);
    if (again.outputs != forward.outputs) Fail("a second forward differs");
    if (again.statistic != forward.statistic) Fail("the statistic of a second forward differs");
    for (size_t i = 0; spec.outputs.size() > 1 && i < spec.outputs.size(); ++i) {
      if (!spec.outputs[i].is_present || spec.outputs[i].is_read_by_backward) continue;
      ForwardResult other = RunForward(backend_, op, spec, inputs_, seed_, static_cast<int64_t>(i));
      FailAll(other.faults);
      other.outputs[i] = forward.outputs[i];
      if (other.outputs != forward.outputs)
        Fail(fmt::format("the result without output {} differs", i));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool is_elementwise = RuleOf(spec.type).is_elementwise();
      if (!is_elementwise || spec.inputs[i].bytes() != spec.outputs[0].bytes()) continue;
      if (!inputs_[i].is_present || spec.outputs[0].bytes() == 0) continue;
      const ForwardResult in_place =
          RunForward(backend_, op, spec, inputs_, seed_, -1, static_cast<int64_t>(i));
      if (in_place.outputs[0] != forward.outputs[0]) {
        Fail(fmt::format("the result in place of input {} differs", i));
      }
    }
  }

  void CheckBackward(PreparedOp& op, const OpSpec& spec, const ForwardResult& forward,
                     const std::vector<bool>& arrives) {
    std::vector<Tensor> arriving = output_gradients_;
    for (size_t i = 0; i < arriving.size(); ++i) {
      if (!arrives[i]) arriving[i] = {};
    }
    const BackwardResult first = RunBackward(backend_, op, spec, inputs_, forward, arriving, seed_);
    FailAll(first.faults);
    const BackwardResult second =
        RunBackward(backend_, op, spec, inputs_, forward, arriving, seed_);
    if (first.gradients != second.gradients) Fail("a second backward differs");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!spec.inputs[i].has_gradient) continue;
      const Tensor& expected = NumericGradient(arriving, arrives, i);
      Tensor actual = FromBytes(first.gradients[i], spec.inputs[i]);
      for (int64_t k = 0; k < actual.size(); ++k) {
        if (std::isnan(expected[k]) && std::isfinite(actual[k])) actual[k] = expected[k];
      }
      Compare(actual, expected, fmt::format("the gradient of input {}", i));
    }
  }

  // Returns the gradient of the sum of all outputs, each weighted with its arriving gradient. Only
  // some elements of a large input are differenced; the others stay NaN.
  const Tensor& NumericGradient(const std::vector<Tensor>& arriving,
                                const std::vector<bool>& arrives, size_t position) {
    const auto [found, is_new] = numeric_.try_emplace({arrives, position});
    if (!is_new) return found->second;
    std::vector<Tensor> inputs = inputs_;
    Tensor& gradient = found->second = inputs_[position];
    const int64_t count =
        std::clamp(kMaxDifferencedElements / std::max<int64_t>(1, gradient.size()), kMinDifferences,
                   kMaxDifferences);
    const int64_t stride = gradient.size() / count + 1;
    for (int64_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = std::nan("");
      if (i % stride != 0 && i + 1 != gradient.size()) continue;
      const double at = inputs_[position][i];
      const double step = kStep * std::max(1.0, std::abs(at));
      inputs[position][i] = at + step;
      const double above = SumWeightedDifferences(Evaluate(inputs), arriving);
      inputs[position][i] = at - step;
      const double below = SumWeightedDifferences(Evaluate(inputs), arriving);
      inputs[position][i] = at;
      gradient[i] = (above - below) / (2 * step);
    }
    return gradient;
  }

  // Sums the weighted differences from the expected outputs. Summing the outputs would lose small
  // changes to rounding.
  double SumWeightedDifferences(const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& weights) const {
    double sum = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (int64_t k = 0; k < weights[i].size(); ++k) {
        sum += (outputs[i][k] - expected_[i][k]) * weights[i][k];
      }
    }
    return sum;
  }

  void Compare(const Tensor& actual, const Tensor& expected, const std::string& what) {
    for (int64_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(expected[i]) ? std::isnan(actual[i]) : IsNear(actual[i], expected[i])) {
        continue;
      }
      Fail(fmt::format("{}, element {}: {} instead of {}", what, i, actual[i], expected[i]));
      return;
    }
  }

  bool IsNear(double actual, double expected) const {
    if (actual == expected) return true;
    return std::abs(actual - expected) <= case_.tolerance * std::max(1.0, std::abs(expected));
  }

  Backend& backend_;
  const OpCase case_;
  const uint64_t seed_;
  Rng rng_;
  Function function_ = nullptr;
  std::string variant_;
  std::vector<Tensor> inputs_;
  std::vector<bool> is_constant_;
  std::vector<Tensor> expected_;
  std::vector<Tensor> output_gradients_;
  std::map<std::pair<std::vector<bool>, size_t>, Tensor> numeric_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> CheckOp(Backend& backend, const CaseRow& row, uint64_t seed) {
  return Checker(backend, row, seed).Check();
}

}  // namespace ckplan::reference
