#include "lib/executor/cuda/host_fallback.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "lib/executor/cuda/cuda_backend.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/testing/host/host_device.h"
#include "lib/executor/cuda/testing/test_backend.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan::cuda {
namespace {

constexpr uint64_t kFallbackSeed = 20251130;

using reference::BackwardResult;
using reference::ForwardResult;

// Runs a case by both backends, forward and backward.
void CheckSameBits(Backend& gpu, Backend& host, const reference::CaseRow& row) {
  const OpSpec spec = reference::SpecOfCase(row);
  const int64_t available = gpu.AvailableBytes();
  const auto op = gpu.Prepare(spec);
  const auto expected_op = host.Prepare(spec);
  REQUIRE(op.ok());
  REQUIRE(expected_op.ok());
  CHECK_FALSE((*op)->WhyOnHost().empty());
  CHECK((*op)->workspace().forward == 0);
  CHECK((*op)->workspace().backward == 0);
  CHECK(gpu.AvailableBytes() == available);
  const auto inputs = FillInputs(ParseCase(row), kFallbackSeed);
  const ForwardResult forward = RunForward(gpu, **op, spec, inputs, kFallbackSeed);
  const ForwardResult expected = RunForward(host, **expected_op, spec, inputs, kFallbackSeed);
  CHECK(forward.outputs == expected.outputs);
  CHECK(forward.statistic == expected.statistic);
  if (!NeedsGradient(spec)) return;
  Rng rng(kFallbackSeed);
  std::vector<reference::Tensor> arriving;
  for (const Operand& output : spec.outputs) {
    arriving.push_back(reference::RandomGradient(output, rng));
  }
  const BackwardResult backward =
      RunBackward(gpu, **op, spec, inputs, forward, arriving, kFallbackSeed);
  const BackwardResult expected_backward =
      RunBackward(host, **expected_op, spec, inputs, expected, arriving, kFallbackSeed);
  CHECK(backward.gradients == expected_backward.gradients);
}

void CheckFamily(std::span<const reference::CaseRow> rows, std::set<std::string>& seen) {
  const auto gpu = MakeTestBackend();
  const auto host = MakeHost();
  for (const reference::CaseRow& row : rows) {
    const std::string type = ParseCase(row).spec.type;
    const OpRow* const of = Table().Find(type);
    REQUIRE(of != nullptr);
    if (of->prepare != nullptr) continue;
    CAPTURE(type);
    CAPTURE(row.operands);
    CAPTURE(row.attributes);
    CheckSameBits(*gpu, *host, row);
    seen.insert(type);
  }
}

TEST_CASE("host fallback: each operator has the CPU's bits, and nothing but operands on the GPU") {
  std::set<std::string> seen;
#define CKPLAN_FAMILY(Name) CheckFamily(reference::Name##Cases(), seen);
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
  for (const OpRow& row : Table().rows()) {
    // These draw random numbers, for which ../ops_test.cc has tests.
    const bool is_random = row.type.substr(0, 6) == "Random" || row.type == "Bernoulli";
    if (row.prepare != nullptr || is_random) continue;
    CAPTURE(row.type);
    CHECK(seen.count(std::string(row.type)) == 1);
  }
}

const reference::CaseRow kTopK = {"TopK", "f5x7 i1=[3] -> f5x3 i5x3", ""};

TEST_CASE("host fallback: an operator runs after a larger one was prepared") {
  const auto gpu = MakeTestBackend();
  const auto host = MakeHost();
  const OpSpec spec = reference::SpecOfCase(kTopK);
  const auto op = gpu->Prepare(spec);
  const auto large =
      gpu->Prepare(reference::SpecOfCase({"TopK", "f50x700 i1=[3] -> f50x3 i50x3", ""}));
  REQUIRE(op.ok());
  REQUIRE(large.ok());
  const auto inputs = FillInputs(ParseCase(kTopK), 1);
  CHECK(RunForward(*gpu, **op, spec, inputs, 1).outputs ==
        RunForward(*host, **host->Prepare(spec), spec, inputs, 1).outputs);
}

TEST_CASE("host fallback: a kernel that refuses its operator leaves it to the host, and says why") {
  const auto gpu = MakeTestBackend();
  const reference::CaseRow row = {"FusedAttention", "f1x1x2x6 f1x1x3x6 f1x1x3x6 -> f1x1x2x6",
                                  "batch=1 heads=1 key_heads=1 queries=2 keys=3 size=6 "
                                  "value_size=6"};
  const auto op = gpu->Prepare(reference::SpecOfCase(row));
  REQUIRE(op.ok());
  CHECK((*op)->WhyOnHost() == "its type is not bfloat16, which cuDNN's attention requires");
}

TEST_CASE("host fallback: a program without the CPU backend refuses such operators") {
  const auto gpu = MakeBackend(MakeHostDevice(), nullptr);
  const auto op = gpu->Prepare(reference::SpecOfCase(kTopK));
  REQUIRE_FALSE(op.ok());
  CHECK(op.error().code == ErrorCode::kUnsupported);
  CHECK(op.error().message.find("was built without the cpu backend") != std::string::npos);
}

}  // namespace
}  // namespace ckplan::cuda
