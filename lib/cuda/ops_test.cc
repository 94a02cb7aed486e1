// The operators of the CUDA backend against the double-precision reference: the cases that the CPU
// backend is tested with, see lib/reference/op_case.h.
#include <doctest/doctest.h>

#include "lib/cuda/test_backend.h"
#include "lib/reference/check_bfloat16.h"
#include "lib/reference/check_op.h"

namespace ckplan::cuda {
namespace {

constexpr uint64_t kSeed = 20240607;

using Check = std::vector<std::string> (*)(Backend&, const reference::CaseRow&, uint64_t);

void CheckCases(std::span<const reference::CaseRow> rows, Check check = reference::CheckOp) {
  const auto backend = MakeTestBackend();
  for (const reference::CaseRow& row : rows) {
    const std::vector<std::string> faults = check(*backend, row, kSeed);
    std::string message;
    for (const std::string& fault : faults) message += fault + "\n";
    CHECK_MESSAGE(faults.empty(), message);
  }
}

void CheckNarrowCases(std::span<const reference::CaseRow> rows) {
  CheckCases(rows, reference::CheckBFloat16);
}

TEST_CASE("cuda: elementwise operators of one input") { CheckCases(reference::UnaryCases()); }
TEST_CASE("cuda: elementwise operators of several inputs") { CheckCases(reference::BinaryCases()); }
TEST_CASE("cuda: reductions and running sums") { CheckCases(reference::ReduceCases()); }
TEST_CASE("cuda: movement") { CheckCases(reference::MoveCases()); }
TEST_CASE("cuda: generated tensors") { CheckCases(reference::GenerateCases()); }
TEST_CASE("cuda: resizing and padding") { CheckCases(reference::ResizeCases()); }
TEST_CASE("cuda: gathering and scattering") { CheckCases(reference::GatherCases()); }
TEST_CASE("cuda: rotary embeddings") { CheckCases(reference::RotaryCases()); }
TEST_CASE("cuda: convolutions and pools") { CheckCases(reference::ConvCases()); }
TEST_CASE("cuda: normalisations and softmax") { CheckCases(reference::NormCases()); }
TEST_CASE("cuda: matrix products") { CheckCases(reference::MatMulCases()); }
TEST_CASE("cuda: recurrent networks") { CheckCases(reference::RecurrentCases()); }
TEST_CASE("cuda: attention") { CheckCases(reference::AttentionCases()); }
TEST_CASE("cuda: losses") { CheckCases(reference::LossCases()); }

// Activations and their gradients as bfloat16, all else as float32.
TEST_CASE("cuda: elementwise operators of one input, stored as bfloat16") {
  CheckNarrowCases(reference::UnaryCases());
}
TEST_CASE("cuda: elementwise operators of several inputs, stored as bfloat16") {
  CheckNarrowCases(reference::BinaryCases());
}
TEST_CASE("cuda: reductions and running sums, stored as bfloat16") {
  CheckNarrowCases(reference::ReduceCases());
}
TEST_CASE("cuda: movement, stored as bfloat16") { CheckNarrowCases(reference::MoveCases()); }
TEST_CASE("cuda: generated tensors, stored as bfloat16") {
  CheckNarrowCases(reference::GenerateCases());
}
TEST_CASE("cuda: resizing and padding, stored as bfloat16") {
  CheckNarrowCases(reference::ResizeCases());
}
TEST_CASE("cuda: gathering and scattering, stored as bfloat16") {
  CheckNarrowCases(reference::GatherCases());
}
TEST_CASE("cuda: rotary embeddings, stored as bfloat16") {
  CheckNarrowCases(reference::RotaryCases());
}
TEST_CASE("cuda: convolutions and pools, stored as bfloat16") {
  CheckNarrowCases(reference::ConvCases());
}
TEST_CASE("cuda: normalisations and softmax, stored as bfloat16") {
  CheckNarrowCases(reference::NormCases());
}
TEST_CASE("cuda: matrix products, stored as bfloat16") {
  CheckNarrowCases(reference::MatMulCases());
}
TEST_CASE("cuda: recurrent networks, stored as bfloat16") {
  CheckNarrowCases(reference::RecurrentCases());
}
TEST_CASE("cuda: attention, stored as bfloat16") { CheckNarrowCases(reference::AttentionCases()); }
TEST_CASE("cuda: losses, stored as bfloat16") { CheckNarrowCases(reference::LossCases()); }

}  // namespace
}  // namespace ckplan::cuda
