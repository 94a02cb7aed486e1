#include "lib/planning/planner/sized_models.h"

#include <utility>

#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/memory_attempts.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

Result<SizedModel> SizedModelOf(Source source, const SolveLimits& limits) {
  SizedModel sized{std::move(source)};
  const Source& of = sized.source;
  const TrainingStep step = of.step();
  sized.constants = TotalConstants(step.constants(), OptimizerState(of.request, step.optimized()));
  sized.covered = CoveredByBudget(step, of.request);
  sized.least_need = MinNeed(step, of.request);
  sized.keep_all_peak = KeepAllPeak(step);
  sized.step = step.cost();
  if (of.request.recompute.empty()) {
    // Sizes that don't fit are never shown.
    const AccountedStep accounted{step, of.request, of.buffers, /*seeks_least=*/false};
    sized.keep_all = AccountFor(accounted, step.KeepAll(), sized.keep_all_peak);
    return sized;
  }
  CKPLAN_ASSIGN_OR_RETURN(const Plan plan, MakePlan(of, KeepAllRequest(of.request), limits));
  sized.keep_all_peak = plan.figures.peak;
  sized.forced = plan.figures.overhead;
  sized.keep_all = AccountForPlan(of, plan);
  return sized;
}

}  // namespace

std::optional<Cost> SizedModel::Bound(Bytes budget) const {
  return OwnOrderBound(source.step(), budget);
}

Result<const SizedModel*> SizedModels::At(int64_t count) {
  if (const auto known = known_.find(count); known != known_.end()) return &known->second;
  if (refusals_.contains(count)) return nullptr;
  Result<Source> source = read_(RequestAt(count), dim_);
  if (source.ok()) {
    CKPLAN_ASSIGN_OR_RETURN(SizedModel sized, SizedModelOf(*std::move(source), limits_));
    return &known_.emplace(count, std::move(sized)).first->second;
  }
  const ErrorCode code = source.error().code;
  if (code != ErrorCode::kInvalidInput && code != ErrorCode::kUnsupported) {
    return std::move(source).error();
  }
  refusals_.emplace(count, std::move(source).error());
  return nullptr;
}

PlanRequest SizedModels::RequestAt(int64_t count) const {
  PlanRequest request = request_;
  (dim_.empty() ? request.batch : request.dims[dim_]) = count * multiple_of_;
  return request;
}

bool SizedModels::IsAsRead(int64_t count, const ReadSource& read) const {
  const auto known = known_.find(count);
  if (known == known_.end() || !known->second.source.is_derived) return true;
  const Source& derived = known->second.source;
  const Result<Source> source = read(RequestAt(count));
  return source.ok() && source->graph == derived.graph && source->joint == derived.joint &&
         source->buffers == derived.buffers && source->request == derived.request;
}

std::optional<Error> SizedModels::RefusalOf(int64_t count) const {
  const auto refusal = refusals_.find(count);
  return refusal == refusals_.end() ? std::nullopt : std::optional(refusal->second);
}

}  // namespace ckplan
