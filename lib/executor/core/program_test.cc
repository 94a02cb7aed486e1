#include "lib/executor/core/program.h"

#include <algorithm>

#include "lib/executor/core/testing/steps.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {
namespace {

// Follows the actions and returns the maximum of the bytes that live at once. Each buffer must
// begin once and end once, and must be alive when it is used.
Bytes PeakOf(const Program& program) {
  std::vector<int> begun(program.buffers.size());
  std::vector<int> ended(program.buffers.size());
  Bytes live;
  Bytes peak;
  const auto check_lives = [&](int32_t buffer) {
    if (buffer == kNoBuffer) return;
    CHECK(begun[static_cast<size_t>(buffer)] == 1);
    CHECK(ended[static_cast<size_t>(buffer)] == 0);
  };
  for (const Action& action : program.actions) {
    const auto at = static_cast<size_t>(action.buffer);
    if (action.kind == ActionKind::kAllocate) {
      ++begun[at];
      live += program.buffers[at].bytes;
      peak = std::max(peak, live);
    } else if (action.kind == ActionKind::kRelease) {
      check_lives(action.buffer);
      ++ended[at];
      live -= program.buffers[at].bytes;
    } else {
      check_lives(action.buffer);
      check_lives(action.from);
    }
  }
  for (size_t i = 0; i < begun.size(); ++i) {
    CHECK(begun[i] == 1);
    CHECK(ended[i] == 1);
  }
  CHECK(live == Bytes(0));
  return peak;
}

void CheckRandomPlans(SmallStep& small) {
  const PlacedProgram keep_all = small.KeepAll();
  constexpr uint64_t kFirstSeed = 500;
  int recomputing = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const PlacedProgram plan = small.Random(rng, static_cast<int>(rng.Between(0, 100)));
    recomputing += plan.program.calls.size() > keep_all.program.calls.size() ? 1 : 0;
    const ValidationReport report = small.Validate(keep_all, plan);
    for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
    CHECK(report.parameters == 8);
    CHECK(report.differences.empty());
    CHECK(report.plan.arena_peak.total == plan.predicted_peak);
    CHECK(report.plan.counted_peak.total == plan.predicted_peak);
    CHECK(report.plan.loss == report.keep_all.loss);
    CHECK(report.plan.arena_used <= plan.arena_bytes);
  }
  CHECK(recomputing > 50);
}

}  // namespace

TEST_CASE("program: allocates what the timeline counts, whatever is kept") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    const SmallStep small(*backend, SmallNet(), 2, type);
    constexpr uint64_t kFirstSeed = 100;
    for (uint64_t seed = kFirstSeed; seed < kFirstSeed + 200; ++seed) {
      CAPTURE(seed);
      Rng rng(seed);
      const PlacedProgram plan = small.Random(rng, static_cast<int>(rng.Between(0, 100)));
      CHECK(PeakOf(plan.program) == plan.predicted_peak);
    }
  }
}

TEST_CASE("program: plans of random kept sets compute the same gradients in the predicted memory") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    SmallStep small(*backend, SmallNet(), 2, type);
    CheckRandomPlans(small);
  }
}

TEST_CASE("program: a schedule that is no training step of the graph is not placed") {
  const auto backend = MakeTestBackend();
  const SmallStep small(*backend, SmallNet(), 2);
  std::vector<NodeId> order;
  for (const NodeId id : small.step().graph.nodes().ids()) order.push_back(id);
  const auto refusal = [&](size_t step, int32_t index) {
    Plan plan;
    plan.schedule = KeepAllSchedule(order);
    if (step < plan.schedule.steps.size()) plan.schedule.steps[step].index = index;
    plan.schedule.steps.resize(std::min(plan.schedule.steps.size(), step + 20));
    const Result<PlacedProgram> placed = PlaceByPlan(small.step(), small.Graph(), plan);
    REQUIRE_FALSE(placed.ok());
    CHECK(placed.error().code == ErrorCode::kCheckFailed);
    return placed.error().message;
  };
  for (const int32_t index : {1 << 30, -1, static_cast<int32_t>(order.size())}) {
    CAPTURE(index);
    CHECK(refusal(3, index).find("runs a node that the graph does not have") != std::string::npos);
  }
  CHECK(refusal(0, 0).find("the plan cannot be run: schedule: ") ==
        0);  // The schedule ends too early.
}

TEST_CASE("program: the parts of the measured peak add up") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    SmallStep small(*backend, SmallNet(), 2, type);
    const PlacedProgram keep_all = small.KeepAll();
    const MeasuredPeak peak = small.Validate(keep_all, keep_all).plan.counted_peak;
    CHECK(peak.tensors + peak.gradients + peak.workspaces == peak.total);
    CHECK(peak.tensors > Bytes(0));
  }
}

}  // namespace ckplan
