#include "lib/planning/algorithms/rotor/rotor.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/rotor/persistent_program.h"
#include "lib/planning/algorithms/rotor/stages.h"
#include "lib/problem/schedule/lower.h"

namespace ckplan {
namespace {

constexpr int64_t kSlots = 500;  // The authors' own program, rotor, uses as many.

int64_t SlotCount(int64_t budget) { return std::min(budget, kSlots); }

// Returns floor(budget * slot / slots) without overflow.
int64_t BytesOf(int64_t slot, int64_t budget) {
  const int64_t slots = SlotCount(budget);
  return budget / slots * slot + budget % slots * slot / slots;
}

// Returns the least number of slots that hold `bytes`; one more than exist if none does.
int64_t SlotsFor(int64_t bytes, int64_t budget) {
  int64_t low = 0;
  int64_t high = SlotCount(budget) + 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool holds = BytesOf(middle, budget) >= bytes;
    (holds ? high : low) = holds ? middle : middle + 1;
  }
  return low;
}

std::vector<Stage> InSlots(const std::vector<Stage>& stages, int64_t budget) {
  std::vector<Stage> rounded = stages;
  for (Stage& stage : rounded) {
    for (int64_t Stage::*size : {&Stage::output, &Stage::saved, &Stage::gradient, &Stage::forward,
                                 &Stage::forward_all, &Stage::backward}) {
      stage.*size = SlotsFor(stage.*size, budget);
    }
  }
  return rounded;
}

// Returns the least budget whose slots hold the memory that `need` computes. Sizes are rounded up,
// so no size takes more slots in a larger budget, and bisection finds the least. Twice the need in
// bytes plus a slot for each of 64 stages allows for any rounding.
int64_t LeastBudget(const std::vector<Stage>& stages, int64_t (*need)(std::span<const Stage>)) {
  int64_t low = std::max<int64_t>(1, need(stages));
  int64_t high = 2 * low;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool fits = need(InSlots(stages, middle)) <= SlotCount(middle);
    (fits ? high : low) = fits ? middle : middle + 1;
  }
  return low;
}

class Rotor : public PreparedSolver {
 public:
  explicit Rotor(const Problem& problem)
      : graph_(problem.graph), chain_(FindStages(problem.graph, problem.vertices)) {
    if (chain_.stages.empty()) return;
    min_budget_ = LeastBudget(chain_.stages, LeastMemory);
    max_budget_ = std::max(min_budget_, LeastBudget(chain_.stages, MemoryToSaveAll));
  }

  Knob knob() const override {
    return {Knob::Kind::kPaperBudget, min_budget_, max_budget_, min_budget_};
  }

  Result<SolveOutcome> Solve(int64_t budget, const SolveLimits&) override {
    SolveOutcome outcome;
    outcome.guarantee = "optimal among persistent schedules of the chain, in slots of memory";
    outcome.paper.budget = Bytes(budget);
    // A budget above the useful one would only make the slots coarser.
    const int64_t useful = std::min(budget, max_budget_);
    if (chain_.stages.empty()) {
      outcome.strategy = KeepAllSchedule({});
      return outcome;
    }
    const PersistentProgram program(InSlots(chain_.stages, useful), SlotCount(useful));
    if (!program.is_feasible()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("rotor has no schedule within {} bytes", budget));
    }
    int64_t once = 0;
    for (const Stage& stage : chain_.stages) once += stage.time;
    outcome.paper.peak = Bytes(program.PeakOf(chain_.stages));
    outcome.paper.overhead = Cost(program.time() - once);
    outcome.is_optimal = useful <= kSlots || program.time() == once;
    outcome.strategy = ScheduleOf(program.Runs());
    return outcome;
  }

 private:
  Schedule ScheduleOf(const std::vector<StageRun>& runs) const {
    Schedule schedule;
    std::vector<bool> has_run(chain_.stages.size());
    for (const StageRun& run : runs) {
      const std::vector<NodeId>& nodes = chain_.nodes[run.stage];
      if (run.is_backward) {
        const bool is_last = run.stage + 1 == chain_.stages.size();
        if (is_last) schedule.steps.push_back(Step::Loss());
        for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
          schedule.steps.push_back(Step::Backward(*id));
        }
        continue;
      }
      for (const NodeId id : nodes) {
        if (has_run[run.stage] && chain_.runs_once[id]) continue;
        schedule.steps.push_back(Step::Forward(id));
      }
      has_run[run.stage] = true;
    }
    return WithoutUnreadRuns(graph_, schedule);
  }

  const TensorGraph& graph_;
  const StageChain chain_;
  int64_t min_budget_ = 0;
  int64_t max_budget_ = 0;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareRotor(const Problem& problem, const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new Rotor(problem));
}

}  // namespace ckplan
