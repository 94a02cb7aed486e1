#include "lib/planning/planner/warm_starts.h"

#include <optional>
#include <stop_token>

#include "lib/base/stop.h"
#include "lib/planning/planner/check_request.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/solve.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr int64_t kQuickWarmStartWork = 500'000;
constexpr int64_t kNormalWarmStartWork = 2'000'000;
constexpr int64_t kThoroughWarmStartWork = 100'000'000;

}  // namespace

int64_t WarmStartWork(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return kQuickWarmStartWork;
    case SearchEffort::kNormal:
      return kNormalWarmStartWork;
    case SearchEffort::kThorough:
      return kThoroughWarmStartWork;
  }
  return kNormalWarmStartWork;
}

std::vector<Schedule> WarmStarts(const PlanProblem& problem, const WarmStartLimits& work,
                                 const SolveLimits& limits) {
  WorkLimit limit(limits.stop, work.work);
  PlanRequest request = problem.request;
  request.order = StepOrder::kModel;
  const PlanProblem own{
      problem.step,       request,         problem.budget,        problem.minimizes_peak,
      problem.most_added, problem.balance, problem.is_recomputed, problem.rules,
      problem.offload};
  Simulator simulator(problem.step);
  std::vector<Schedule> schedules;
  const auto add = [&](const SolverInfo& info) {
    const auto answer = limit.Run([&](const std::stop_token& stop) -> Result<Answer> {
      CKPLAN_RETURN_IF_ERROR(CheckRequest(info, own.step, request));
      SolveLimits own_limits = limits;
      own_limits.stop = stop;
      return SolveWith(info, own, own_limits);
    });
    if (!answer || !answer->ok()) return;
    const Schedule& schedule = (*answer)->schedule;
    const Simulation simulation = simulator.Run(schedule).value();
    if (own.Fits(simulation.peak, simulation.overhead)) schedules.push_back(schedule);
  };
  for (const bool is_slow : {false, true}) {
    if (is_slow && !work.include_slow) break;
    for (const SolverInfo& info : AllSolvers()) {
      if (IsSlow(info) != is_slow || !CanPlan(info, problem.step)) continue;
      if (!work.include_own_order && PlansRuns(info)) continue;
      // On a joint graph, keep-all is always a start.
      const bool is_start = problem.step.is_joint() && info.guarantee == Guarantee::kBaseline;
      if (!is_start) add(info);
    }
  }
  return schedules;
}

}  // namespace ckplan
