#include "lib/planner/pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/planner/peak_budget.h"
#include "lib/planner/planner.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

Result<Done> CheckParetoRequest(const PlanRequest& request) {
  const bool has_budget = request.budget.is_given() || request.total_budget.is_given() ||
                          request.paper_budget.is_given();
  if (has_budget || request.setting) {
    return MakeError(ErrorCode::kUsage,
                     "a curve is of all budgets, so none is taken, nor a knob's setting");
  }
  if (request.algorithm != kAutoAlgorithm) return Done{};
  return MakeError(ErrorCode::kUsage,
                   "auto is the best of all algorithms at one budget; name them, or all");
}

CurvePoint PointOf(const Plan& plan) { return {plan.figures.peak, plan.figures.overhead}; }

// Returns the points of plans, each of which is made anew for its budget.
Result<std::vector<CurvePoint>> PointsOfPlans(const Source& source, const PlanRequest& request,
                                              const SolveLimits& limits) {
  PlanRequest own = request;
  own.budget = {Budget::Kind::kMin, Bytes(0), 0};
  CKPLAN_ASSIGN_OR_RETURN(const Plan least, MakePlan(source, own, limits));
  std::vector<CurvePoint> points = {PointOf(least)};
  const Bytes keep_all = KeepAllPeak(source.step());
  if (points.front().peak >= keep_all) return points;
  for (const Bytes budget : CurveBudgets(points.front().peak, keep_all)) {
    own.budget = Budget::Of(budget);
    const Result<Plan> plan = MakePlan(source, own, limits);
    if (plan.ok()) points.push_back(PointOf(*plan));
    if (!plan.ok() && plan.error().code != ErrorCode::kInfeasible) return plan.error();
  }
  return points;
}

Result<std::vector<CurvePoint>> PointsOf(const Source& source, const PlanRequest& request,
                                         const SolveLimits& limits) {
  const bool is_best = request.algorithm == kBestAlgorithm;
  if (source.joint && !is_best) return PointsOfPlans(source, request, limits);
  CKPLAN_ASSIGN_OR_RETURN(std::vector<CurvePoint> points,
                          PointsByBudgets(source.step(), request, limits));
  if (!is_best) return points;
  // The search for the least peak also starts from other algorithms' plans.
  PlanRequest for_least = request;
  for_least.budget = {Budget::Kind::kMin, Bytes(0), 0};
  CKPLAN_ASSIGN_OR_RETURN(const Plan least, MakePlan(source, for_least, limits));
  points.push_back(PointOf(least));
  return points;
}

}  // namespace

Result<ParetoCurve> TracePareto(const Source& source, const PlanRequest& request,
                                const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckParetoRequest(request));
  CKPLAN_ASSIGN_OR_RETURN(std::vector<CurvePoint> points, PointsOf(source, request, limits));
  // A search that is stopped keeps what it has found by then, which differs from run to run.
  if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  ParetoCurve curve;
  curve.algorithm = request.algorithm;
  curve.baseline_peak = KeepAllPeak(source.step());
  curve.step = source.step().cost();
  curve.points = FrontOf(std::move(points));
  return curve;
}

}  // namespace ckplan
