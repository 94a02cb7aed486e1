#include "lib/planning/planner/pareto.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "lib/planning/planner/one_algorithm.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

Result<Done> CheckParetoRequest(const PlanRequest& request) {
  const bool has_budget = request.budget.is_given() || request.total_budget.is_given() ||
                          request.paper_budget.is_given();
  if (has_budget || request.setting) {
    return MakeError(ErrorCode::kUsage,
                     "a curve covers all budgets; it takes no budget and no knob setting");
  }
  if (request.algorithm != kAutoAlgorithm) return Done{};
  return MakeError(
      ErrorCode::kUsage,
      "auto picks the best algorithm for one budget; for a curve, name the algorithms, or all");
}

// Collects the points of plans and, per point, the lowest host peak of its plans.
class PlannedPoints {
 public:
  void Add(const Plan& plan) {
    points_.push_back({plan.figures.peak, plan.figures.overhead});
    if (!plan.figures.offload) return;
    const Bytes host_peak = plan.figures.offload->host_peak;
    const auto [known, is_new] = host_peaks_.emplace(KeyOf(points_.back()), host_peak);
    if (!is_new) known->second = std::min(known->second, host_peak);
  }
  void Add(const std::vector<CurvePoint>& points) {
    points_.insert(points_.end(), points.begin(), points.end());
  }

  std::vector<CurvePoint> Front() const { return FrontOf(points_); }
  std::vector<Bytes> HostPeaksOf(const std::vector<CurvePoint>& points) const {
    std::vector<Bytes> peaks;
    for (const CurvePoint& point : points) {
      if (!host_peaks_.empty()) peaks.push_back(host_peaks_.at(KeyOf(point)));
    }
    return peaks;
  }

 private:
  using Key = std::pair<Bytes, Cost>;
  static Key KeyOf(const CurvePoint& point) { return {point.peak, point.overhead}; }

  std::vector<CurvePoint> points_;
  std::map<Key, Bytes> host_peaks_;
};

// Makes a separate plan for each budget, and returns their points.
Result<PlannedPoints> PointsOfPlans(const Source& source, const PlanRequest& request,
                                    const SolveLimits& limits) {
  PlanRequest own = request;
  own.budget = {Budget::Kind::kMin, Bytes(0), 0};
  CKPLAN_ASSIGN_OR_RETURN(const Plan least, MakePlan(source, own, limits));
  PlannedPoints points;
  points.Add(least);
  const Bytes keep_all = KeepAllPeak(source.step());
  if (least.figures.peak >= keep_all) return points;
  for (const Bytes budget : CurveBudgets(least.figures.peak, keep_all)) {
    own.budget = Budget::Of(budget);
    const Result<Plan> plan = MakePlan(source, own, limits);
    if (plan.ok()) points.Add(*plan);
    if (!plan.ok() && plan.error().code != ErrorCode::kInfeasible) return plan.error();
  }
  return points;
}

Result<PlannedPoints> PointsOf(const Source& source, const PlanRequest& request,
                               const SolveLimits& limits) {
  const bool is_best = request.algorithm == kBestAlgorithm;
  const bool plans_anew = source.joint && (!is_best || request.offload);
  if (plans_anew) return PointsOfPlans(source, request, limits);
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<CurvePoint> found,
                          PointsByBudgets(source.step(), request, limits));
  PlannedPoints points;
  points.Add(found);
  return points;
}

// Sets the curve to the Pareto front of these plans.
void SetPlans(std::vector<Plan> plans, ParetoCurve* curve) {
  PlannedPoints points;
  for (const Plan& plan : plans) points.Add(plan);
  curve->points = points.Front();
  curve->host_peaks = points.HostPeaksOf(curve->points);
  curve->plans.clear();
  for (const CurvePoint& point : curve->points) {
    curve->plans.push_back(*std::find_if(plans.begin(), plans.end(), [&](const Plan& plan) {
      return plan.figures.peak == point.peak && plan.figures.overhead == point.overhead;
    }));
  }
}

// Makes a plan for each point. It may be better than the point.
Result<Done> PlanPoints(const Source& source, const PlanRequest& request, const SolveLimits& limits,
                        ParetoCurve* curve) {
  std::vector<Plan> plans;
  for (const CurvePoint& point : curve->points) {
    PlanRequest own = request;
    own.budget = Budget::Of(point.peak);
    CKPLAN_ASSIGN_OR_RETURN(Plan plan, MakePlan(source, own, limits));
    plans.push_back(std::move(plan));
  }
  SetPlans(std::move(plans), curve);
  return Done{};
}

}  // namespace

Result<ParetoCurve> TracePareto(const Source& source, const PlanRequest& asked,
                                const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckParetoRequest(asked));
  PlanRequest request = asked;
  request.memory = {};
  request.reserve.reset();
  CKPLAN_ASSIGN_OR_RETURN(const PlannedPoints points, PointsOf(source, request, limits));
  // A stopped search returns what it has so far, which differs from run to run.
  if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  ParetoCurve curve;
  curve.algorithm = request.algorithm;
  curve.baseline_peak = KeepAllPeak(source.step());
  curve.step = source.step().cost();
  curve.points = points.Front();
  curve.host_peaks = points.HostPeaksOf(curve.points);
  if (!asked.memory.is_given()) return curve;
  CKPLAN_RETURN_IF_ERROR(PlanPoints(source, request, limits, &curve));
  if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  return curve;
}

Result<Done> DropPlansAboveMemory(const Source& source, const PlanRequest& request,
                                  const SolveLimits& limits, ParetoCurve* curve) {
  if (!request.memory.is_given()) return Done{};
  const AccountedStep of{source.step(), request, source.buffers};
  const auto fits = [&](const Plan& plan) {
    return FitsMemory(of, plan.schedule, plan.figures.peak);
  };
  std::vector<Plan> plans;
  std::copy_if(curve->plans.begin(), curve->plans.end(), std::back_inserter(plans), fits);
  if (plans.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(Plan plan, MakePlan(source, request, limits));
    plans.push_back(std::move(plan));
  }
  SetPlans(std::move(plans), curve);
  curve->accountings.clear();
  for (const Plan& plan : curve->plans) {
    curve->accountings.push_back(AccountFor(of, plan.schedule, plan.figures.peak));
  }
  return Done{};
}

}  // namespace ckplan
