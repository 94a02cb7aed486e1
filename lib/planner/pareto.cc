#include "lib/planner/pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/human_bytes.h"
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

// The points of plans, and the least peak on the host of the plans at each point.
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

// Returns the points of plans, each of which is made anew for its budget.
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
  if (!is_best) return points;
  // The search for the least peak also starts from other algorithms' plans.
  PlanRequest for_least = request;
  for_least.budget = {Budget::Kind::kMin, Bytes(0), 0};
  CKPLAN_ASSIGN_OR_RETURN(const Plan least, MakePlan(source, for_least, limits));
  points.Add(least);
  return points;
}

}  // namespace

Result<ParetoCurve> TracePareto(const Source& source, const PlanRequest& asked,
                                const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckParetoRequest(asked));
  PlanRequest request = asked;
  request.memory = {};
  request.reserve.reset();
  CKPLAN_ASSIGN_OR_RETURN(const PlannedPoints points, PointsOf(source, request, limits));
  // A search that is stopped keeps what it has found by then, which differs from run to run.
  if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  ParetoCurve curve;
  curve.algorithm = request.algorithm;
  curve.baseline_peak = KeepAllPeak(source.step());
  curve.step = source.step().cost();
  curve.points = points.Front();
  curve.host_peaks = points.HostPeaksOf(curve.points);
  return curve;
}

Result<Done> LeaveOutWhatNeedsMore(const Source& source, const PlanRequest& request,
                                   ParetoCurve* curve) {
  if (!request.memory.is_given()) return Done{};
  const Bytes covered = CoveredByBudget(source.step(), request);
  const auto first_above = std::find_if(
      curve->points.begin(), curve->points.end(),
      [&](const CurvePoint& point) { return point.peak + covered > request.memory.bytes; });
  if (first_above == curve->points.begin()) {
    const Bytes least = first_above->peak + covered;
    return Error{
        ErrorCode::kInfeasible,
        fmt::format("infeasible: no plan of the curve by {} fits in {}; the least needs {}",
                    curve->algorithm, HumanBytes(request.memory.bytes), HumanBytes(least)),
        {},
        {"try", {{"memory", std::to_string(least.count())}}}};
  }
  curve->points.erase(first_above, curve->points.end());
  if (!curve->host_peaks.empty()) curve->host_peaks.resize(curve->points.size());
  return Done{};
}

}  // namespace ckplan
