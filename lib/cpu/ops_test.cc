// The operators of the CPU backend against the double-precision reference: one case a row, see
// lib/reference/op_case.h.
#include <doctest/doctest.h>

#include "lib/cpu/cpu_backend.h"
#include "lib/ops/op_table.h"
#include "lib/reference/check_op.h"

namespace ckplan::cpu {
namespace {

constexpr uint64_t kSeed = 20240607;

void CheckCases(std::span<const reference::CaseRow> rows) {
  const auto backend = MakeCpuBackend(2);
  for (const reference::CaseRow& row : rows) {
    const std::vector<std::string> faults = reference::CheckOp(*backend, row, kSeed);
    std::string message;
    for (const std::string& fault : faults) message += fault + "\n";
    CHECK_MESSAGE(faults.empty(), message);
  }
}

TEST_CASE("cpu: elementwise operators of one input") { CheckCases(reference::UnaryCases()); }
TEST_CASE("cpu: elementwise operators of several inputs") { CheckCases(reference::BinaryCases()); }
TEST_CASE("cpu: reductions and running sums") { CheckCases(reference::ReduceCases()); }
TEST_CASE("cpu: movement") { CheckCases(reference::MoveCases()); }
TEST_CASE("cpu: generated tensors") { CheckCases(reference::GenerateCases()); }
TEST_CASE("cpu: resizing and padding") { CheckCases(reference::ResizeCases()); }
TEST_CASE("cpu: gathering and scattering") { CheckCases(reference::GatherCases()); }
TEST_CASE("cpu: rotary embeddings") { CheckCases(reference::RotaryCases()); }
TEST_CASE("cpu: convolutions and pools") { CheckCases(reference::ConvCases()); }
TEST_CASE("cpu: normalisations and softmax") { CheckCases(reference::NormCases()); }
TEST_CASE("cpu: matrix products") { CheckCases(reference::MatMulCases()); }
TEST_CASE("cpu: recurrent networks") { CheckCases(reference::RecurrentCases()); }
TEST_CASE("cpu: attention") { CheckCases(reference::AttentionCases()); }
TEST_CASE("cpu: losses") { CheckCases(reference::LossCases()); }

// What is random has no reference, and tests of its own in random_test.cc.
bool IsRandom(std::string_view type) {
  return type.substr(0, 6) == "Random" || type == "Bernoulli" || type == "Dropout";
}

TEST_CASE("cpu: every operator has cases, and a row in the table of operators") {
  for (const OpSupport& op : MakeCpuBackend(2)->Operators()) {
    CAPTURE(op.type);
    CHECK((IsRandom(op.type) || reference::CountCases(op.type) > 0));
    CHECK(RuleOf(op.type).is_known());
  }
}

}  // namespace
}  // namespace ckplan::cpu
