#include "lib/planner/other_plans.h"

#include <utility>

#include "lib/base/stop.h"
#include "lib/base/work_limit.h"
#include "lib/planner/planner.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

constexpr int64_t kQuickWorkOfOthers = 500'000;
constexpr int64_t kNormalWorkOfOthers = 8'000'000;
constexpr int64_t kThoroughWorkOfOthers = 100'000'000;

}  // namespace

int64_t WorkOfOthers(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return kQuickWorkOfOthers;
    case SearchEffort::kNormal:
      return kNormalWorkOfOthers;
    case SearchEffort::kThorough:
      return kThoroughWorkOfOthers;
  }
  return kNormalWorkOfOthers;
}

std::vector<Plan> PlansOfOthers(const TensorGraph& graph, const PlanRequest& request,
                                const Budget& budget, const OthersWork& work,
                                const SolveLimits& limits) {
  const WorkLimit limit(limits.stop, work.work);
  SolveLimits own_limits = limits;
  own_limits.stop = limit.token();
  PlanRequest own = request;
  own.order = StepOrder::kModel;
  own.budget = budget;
  own.total_budget = {};
  std::vector<Plan> plans;
  for (const bool is_slow : {false, true}) {
    for (const SolverInfo& info : AllSolvers()) {
      if (IsSlow(info) != is_slow || (is_slow && !work.wants_slow)) continue;
      if (!work.wants_own_order && DecidesOnRuns(info)) continue;
      own.algorithm = info.name;
      Result<Plan> plan = UnlessStopped([&] { return MakePlan(graph, own, own_limits); });
      if (plan.ok()) plans.push_back(std::move(plan).value());
    }
  }
  return plans;
}

}  // namespace ckplan
