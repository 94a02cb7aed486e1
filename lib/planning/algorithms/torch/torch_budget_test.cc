#include "lib/planning/algorithms/torch/torch_budget.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

// Makes conv -> bn -> relu -> conv -> relu, and their backward, which reads the values that
// backward of these operators reads.
JointGraph TwoConvolutions() {
  return GraphOfOps({{"aten.convolution.default", 8, 10, {}},
                     {"aten.native_batch_norm.default", 8, 2, {0}},
                     {"aten.relu.default", 8, 1, {1}},
                     {"aten.convolution.default", 4, 30, {2}},
                     {"aten.relu.default", 4, 1, {3}},
                     {"aten.threshold_backward.default", 4, 1, {4}},
                     {"aten.convolution_backward.default", 8, 60, {2, 5}},
                     {"aten.threshold_backward.default", 8, 1, {2, 6}},
                     {"aten.native_batch_norm_backward.default", 8, 2, {0, 7}},
                     {"aten.convolution_backward.default", 1, 20, {8}}},
                    5);
}

std::string NamesOf(const std::vector<bool>& saved) {
  std::string names;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (saved[i]) names += std::to_string(i) + " ";
  }
  return names;
}

PlanRequest Within(const Budget& budget) {
  PlanRequest request;
  request.algorithm = "torch-budget";
  request.budget = budget;
  return request;
}

const Budget kLeast = {Budget::Kind::kMin, Bytes(0), 0};

}  // namespace

// Backward reads 0, 2 and 4: 20 bytes. The cut needs 0 and 3 (12 bytes, 60 %), since neither
// convolution may be recomputed: bn and both relus are recomputed from 0 and 3. Among equal cuts
// the one nearest to backward is taken, so 4 replaces 3. At 40 % (8 bytes), the knapsack saves 3 (4
// bytes, cost 30) rather than 0 (8 bytes, cost 10).
TEST_CASE("torch-budget: the cut saves no elementwise result, the knapsack the costly ones") {
  const JointGraph graph = TwoConvolutions();
  const RunProblem problem(graph);
  SavedValues values(graph, problem);
  CHECK(values.border() == 5);
  CHECK(NamesOf(values.Within(kWholeShare)) == "0 2 4 ");
  CHECK(NamesOf(values.Within(6'000)) == "0 4 ");
  CHECK(NamesOf(values.Within(4'000)) == "4 ");
  CHECK(NamesOf(values.Within(0)).empty());
}

TEST_CASE("torch-budget: unsaved values are recomputed just before backward reads them") {
  const JointGraph graph = TwoConvolutions();
  const auto solver = PrepareTorchBudgetRuns(graph, {}).value();
  const RunOutcome outcome = solver->Solve(60, {}).value();
  std::string names;
  for (const OpId op : outcome.runs) names += std::to_string(op.index()) + " ";
  CHECK(names == "0 1 2 3 4 5 1 2 6 7 8 9 ");
}

TEST_CASE(
    "torch-budget: the result of an operation that must not run again is saved, or a value made "
    "from it") {
  JointGraphParts parts = PartsOf(TwoConvolutions());
  parts.ops[OpId(1)].may_repeat = false;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const RunProblem problem(graph);
  SavedValues values(graph, problem);
  CHECK(NamesOf(values.Within(0)) == "2 ");
}

TEST_CASE("torch-budget: the minimum cut is the least of all sets that backward can start from") {
  // Tries every set of forward values. Every value that is read must be saved, or its producer may
  // run again and the values that the producer reads are read as well.
  int compared = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto forward = static_cast<size_t>(rng.Between(2, 8));
    std::vector<SmallOp> ops;
    for (size_t i = 0; i < forward + 4; ++i) {
      SmallOp op{
          rng.Between(0, 2) == 0 ? "Conv" : "Relu", rng.Between(1, 9), rng.Between(1, 9), {}};
      for (size_t r = 0; r < i; ++r) {
        if (rng.Between(0, 3) == 0) op.reads.push_back(static_cast<int32_t>(r));
      }
      ops.push_back(std::move(op));
    }
    ops[0].op = "Conv";
    const JointGraph graph = GraphOfOps(ops, forward);
    const RunProblem problem(graph);
    SavedValues values(graph, problem);
    const auto bytes_of = [&](const std::vector<bool>& saved) {
      int64_t bytes = 0;
      for (size_t v = 0; v < saved.size(); ++v) bytes += saved[v] ? problem.bytes[v] : 0;
      return bytes;
    };
    int64_t least = std::numeric_limits<int64_t>::max();
    for (uint32_t set = 0; set < (1U << forward); ++set) {
      std::vector<bool> is_read(ops.size());
      for (size_t op = forward; op < ops.size(); ++op) {
        for (const int32_t read : ops[op].reads) is_read[static_cast<size_t>(read)] = true;
      }
      bool is_enough = true;
      std::vector<bool> saved(ops.size());
      for (size_t op = forward; op-- > 0;) {
        saved[op] = (set >> op & 1) != 0;
        if (!is_read[op] || saved[op]) continue;
        if (ops[op].op == "Conv") is_enough = false;
        for (const int32_t read : ops[op].reads) is_read[static_cast<size_t>(read)] = true;
      }
      if (is_enough) least = std::min(least, bytes_of(saved));
    }
    // Backward reads this much in total, and the knapsack saves less than a cut that saves
    // everything.
    if (bytes_of(values.Within(kWholeShare)) == least) continue;
    CHECK(bytes_of(values.Within(kWholeShare - 1)) == least);
    ++compared;
  }
  CHECK(compared > 100);
}

TEST_CASE("torch-budget: on random joint graphs budgets are met, and rising ones cost no more") {
  int reran = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(2, 30));
    JointGraphParts parts = PartsOf(RandomJointGraph(rng, options));
    const auto border = static_cast<int32_t>(rng.Between(1, options.ops - 1));
    for (const OpId id : parts.ops.ids()) {
      parts.ops[id].phase = id.index() < border ? Phase::kForward : Phase::kBackward;
    }
    const JointGraph graph = JointGraph::Create(std::move(parts)).value();
    const Plan least = MakePlan(graph, Within(kLeast), {}).value();
    const Bytes own = KeepAllPeak(graph);
    CHECK(least.figures.peak <= own);
    Cost overhead = Cost::Max();
    for (int64_t part = 0; part <= 4; ++part) {
      const Bytes budget(least.figures.peak.count() +
                         (own - least.figures.peak).count() * part / 4);
      const Plan plan = MakePlan(graph, Within(Budget::Of(budget)), {}).value();
      CHECK(plan.figures.peak <= budget);
      CHECK(plan.figures.overhead <= overhead);
      overhead = plan.figures.overhead;
      reran += overhead > Cost(0) ? 1 : 0;
    }
    CHECK(overhead == Cost(0));
  }
  CHECK(reran > 40);
}

// Saved bytes are least if nothing is saved; but then the peak is that of running forward twice.
TEST_CASE("torch-budget: least saved is not least needed, and no setting makes an optimal plan") {
  const TensorGraph graph =
      GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:4@1 -> e:4@7 -> f:4@1 -> g:1@1");
  PlanRequest request;
  request.algorithm = "torch-budget";
  request.setting = {"saved", 0};
  const Plan nothing = *MakePlan(graph, request, {});
  request.setting.reset();
  request.budget = kLeast;
  const Plan least = *MakePlan(graph, request, {});
  CHECK(least.figures.peak < nothing.figures.peak);
  request.algorithm = "best";
  CHECK(MakePlan(graph, request, {})->figures.peak < least.figures.peak);
}

TEST_CASE("torch-budget: a graph without a backward pass is refused") {
  const auto refused = PrepareTorchBudgetRuns(GraphOfOps({{"Relu", 1, 1, {}}}, 1), {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("\"backward\"") != std::string::npos);
}

}  // namespace ckplan
