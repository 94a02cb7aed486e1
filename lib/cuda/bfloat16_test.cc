// Operators whose activations are stored as bfloat16 against the same operators on float32: from
// equal inputs they must make the same, but for the rounding of what they store.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/rng.h"
#include "lib/cuda/test_backend.h"
#include "lib/reference/check_run.h"
#include "lib/reference/contract.h"
#include "lib/reference/op_case.h"

namespace ckplan::cuda {
namespace {

using reference::BackwardResult;
using reference::ForwardResult;
using reference::Tensor;

constexpr uint64_t kSeed = 20240607;
// Of max(1, |value|). A stored value is off by 2^-9 at most; gradients are computed from several.
constexpr double kForwardTolerance = 1.0 / 256;
constexpr double kBackwardTolerance = 1.0 / 32;

double Rounded(double value) {
  const Tensor one{true, ElementType::kBFloat16, {}, {value}};
  return reference::FromBytes(reference::ToBytes(one), {true, ElementType::kBFloat16, {}})
      .values[0];
}

Tensor AsStored(Tensor tensor, ElementType type) {
  tensor.type = type;
  return tensor;
}

// One operator on either storage.
class Comparison {
 public:
  explicit Comparison(const reference::CaseRow& row) : case_(ParseCase(row)), rng_(kSeed) {
    OpSpec& spec = case_.spec;
    std::vector<bool> wants, constant, arrives;
    const bool has_float = std::any_of(spec.outputs.begin(), spec.outputs.end(), IsFloatHere);
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      wants.push_back(has_float && case_.contents[i].wants_gradient &&
                      reference::IsDifferentiable(spec, i));
      constant.push_back(case_.contents[i].is_constant);
      has_gradient_ |= wants.back();
      inputs_.push_back(Fill(spec.inputs[i], case_.contents[i]));
    }
    for (const Operand& output : spec.outputs) {
      arrives.push_back(IsFloatHere(output) && has_gradient_);
      Tensor gradient;
      if (arrives.back()) gradient = Fill(output, {-1, 1, {}, false, false});
      gradients_.push_back(gradient);
    }
    reference::ApplyContract(spec, wants, constant, arrives);
    half_ = spec;
    for (size_t i = 0; i < half_.inputs.size(); ++i) {
      if (!constant[i]) Halve(half_.inputs[i]);
    }
    for (Operand& output : half_.outputs) Halve(output);
  }

  std::string Faults() {
    const auto backend = MakeTestBackend();
    auto whole = backend->Prepare(case_.spec);
    if (!whole.ok()) return whole.error().message;
    auto half = backend->Prepare(half_);
    if (!half.ok()) return half.error().message;
    const ForwardResult expected = RunForward(*backend, **whole, case_.spec, inputs_, kSeed);
    const ForwardResult actual = RunForward(*backend, **half, half_, Halves(inputs_), kSeed);
    for (const std::string& fault : actual.faults) faults_ += fault + "\n";
    for (size_t i = 0; i < half_.outputs.size(); ++i) {
      if (!half_.outputs[i].is_present) continue;
      Compare(reference::FromBytes(actual.outputs[i], half_.outputs[i]),
              reference::FromBytes(expected.outputs[i], case_.spec.outputs[i]), kForwardTolerance,
              fmt::format("output {}", i));
    }
    if (has_gradient_) CompareBackward(*backend, **whole, expected, **half, actual);
    return faults_;
  }

 private:
  static bool IsFloatHere(const Operand& operand) {
    return operand.is_present && operand.type == ElementType::kFloat32;
  }
  static void Halve(Operand& operand) {
    if (IsFloatHere(operand)) operand.type = ElementType::kBFloat16;
  }

  // Values that either storage holds.
  Tensor Fill(const Operand& operand, const reference::Contents& contents) {
    Tensor tensor{operand.is_present, operand.type, operand.dims, {}};
    if (!operand.is_present) return tensor;
    for (int64_t i = 0; i < operand.elements(); ++i) {
      const double part = static_cast<double>(rng_.Between(1, 999)) / 1000;
      const double drawn =
          operand.type == ElementType::kFloat32
              ? contents.low + (contents.high - contents.low) * part
              : static_cast<double>(rng_.Between(static_cast<int64_t>(contents.low),
                                                 static_cast<int64_t>(contents.high)));
      const double value =
          contents.values.empty() ? drawn : contents.values[static_cast<size_t>(i)];
      const bool is_stored_whole = contents.is_constant || operand.type != ElementType::kFloat32;
      tensor.values.push_back(is_stored_whole ? value : Rounded(value));
    }
    return tensor;
  }

  std::vector<Tensor> Halves(const std::vector<Tensor>& tensors) const {
    std::vector<Tensor> halves;
    for (size_t i = 0; i < tensors.size(); ++i) {
      halves.push_back(AsStored(tensors[i], half_.inputs[i].type));
    }
    return halves;
  }

  void CompareBackward(Backend& backend, PreparedOp& whole, const ForwardResult& whole_forward,
                       PreparedOp& half, const ForwardResult& half_forward) {
    const BackwardResult expected =
        RunBackward(backend, whole, case_.spec, inputs_, whole_forward, gradients_, kSeed);
    std::vector<Tensor> arriving;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      arriving.push_back(AsStored(gradients_[i], half_.outputs[i].type));
    }
    const BackwardResult actual =
        RunBackward(backend, half, half_, Halves(inputs_), half_forward, arriving, kSeed);
    for (const std::string& fault : actual.faults) faults_ += fault + "\n";
    for (size_t i = 0; i < half_.inputs.size(); ++i) {
      if (!half_.inputs[i].has_gradient) continue;
      Compare(reference::FromBytes(actual.gradients[i], half_.inputs[i]),
              reference::FromBytes(expected.gradients[i], case_.spec.inputs[i]), kBackwardTolerance,
              fmt::format("the gradient of input {}", i));
    }
  }

  void Compare(const Tensor& actual, const Tensor& expected, double tolerance,
               const std::string& what) {
    for (int64_t i = 0; i < expected.size(); ++i) {
      const double size = std::max(1.0, std::abs(expected[i]));
      if (std::abs(actual[i] - expected[i]) <= tolerance * size || actual[i] == expected[i] ||
          (std::isnan(actual[i]) && std::isnan(expected[i]))) {
        continue;
      }
      faults_ += fmt::format("{}: element {} of {} is {}, and {} from float32\n", case_.text, i,
                             what, actual[i], expected[i]);
      return;
    }
  }

  reference::OpCase case_;
  OpSpec half_;  // The same with activations in bfloat16.
  Rng rng_;
  std::vector<Tensor> inputs_, gradients_;
  bool has_gradient_ = false;
  std::string faults_;
};

void CheckCases(std::span<const reference::CaseRow> rows) {
  for (const reference::CaseRow& row : rows) {
    const std::string faults = Comparison(row).Faults();
    CHECK_MESSAGE(faults.empty(), faults);
  }
}

TEST_CASE("cuda: bfloat16: elementwise operators") {
  CheckCases(reference::UnaryCases());
  CheckCases(reference::BinaryCases());
  CheckCases(reference::RotaryCases());
}
TEST_CASE("cuda: bfloat16: losses") { CheckCases(reference::LossCases()); }

TEST_CASE("cuda: bfloat16: the largest of each line") {
  for (const reference::CaseRow& row : reference::ReduceCases()) {
    if (row.type == "TopK") CheckCases({&row, 1});
  }
}

}  // namespace
}  // namespace ckplan::cuda
