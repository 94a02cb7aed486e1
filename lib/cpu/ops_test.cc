// The operators of the CPU backend against the double-precision reference: one case a row, see
// lib/reference/op_case.h.
#include <doctest/doctest.h>

#include "lib/cpu/cpu_backend.h"
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

}  // namespace
}  // namespace ckplan::cpu
