#include "lib/planning/algorithms/torch/torch_budget.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/planning/algorithms/torch/saved_values.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {
namespace {

constexpr size_t kMaxOps = 50'000;
// Graphs of up to this many operations try all settings; larger ones try fewer.
constexpr size_t kMaxOpsForAll = 5'000;
constexpr int64_t kPercent = 100;

class TorchBudget : public PreparedRunSolver {
 public:
  explicit TorchBudget(const JointGraph& graph) : problem_(graph), values_(graph, problem_) {}

  bool has_backward() const { return values_.border() < problem_.op_count; }

  Knob knob() const override {
    const bool tries_all = static_cast<size_t>(problem_.op_count) <= kMaxOpsForAll;
    return {Knob::Kind::kSavedShare, 0, kPercent, kPercent, tries_all ? kPercent : 10};
  }

  Result<RunOutcome> Solve(int64_t percent, const SolveLimits&) override {
    LazyRuns runs(problem_);
    for (int32_t op = 0; op < values_.border(); ++op) runs.Run(OpId(op));
    runs.KeepOnly(values_.Within(percent * kWholeShare / kPercent));
    for (int32_t op = values_.border(); op < problem_.op_count; ++op) runs.Run(OpId(op));
    return RunOutcome{std::move(runs).Take(), false,
                      fmt::format("heuristic: activation_memory_budget = {:.2f}",
                                  static_cast<double>(percent) / kPercent)};
  }

 private:
  const RunProblem problem_;
  SavedValues values_;
};

}  // namespace

Result<std::unique_ptr<PreparedRunSolver>> PrepareTorchBudgetRuns(const JointGraph& graph,
                                                                  const SolveLimits&) {
  if (graph.ops().size() > kMaxOps) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("torch-budget plans up to {} operations of a training step, and "
                                 "this one has {}",
                                 kMaxOps, graph.ops().size()));
  }
  auto solver = std::make_unique<TorchBudget>(graph);
  if (!solver->has_backward()) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("torch-budget saves values for the backward pass, and no operation "
                    "of \"{}\" is of the phase \"backward\"",
                    graph.name()));
  }
  return std::unique_ptr<PreparedRunSolver>(std::move(solver));
}

}  // namespace ckplan
