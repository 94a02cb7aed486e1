#include "lib/planning/plan/claims.h"

#include <algorithm>
#include <optional>

#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/optimizer_state.h"

namespace ckplan {

void CompareConstants(const ConstantMemory& derived, const Optimized& optimized, const Plan& plan,
                      std::vector<std::string>* faults) {
  const ConstantMemory& claimed = plan.figures.constants;
  CompareClaim("parameters", claimed.parameters, derived.parameters, faults);
  CompareClaim("parameter_gradients", claimed.parameter_gradients, derived.parameter_gradients,
               faults);
  CompareClaim("inputs", claimed.inputs, derived.inputs, faults);
  CompareClaim("unsharded", claimed.unsharded, derived.unsharded, faults);
  CompareClaim("optimizer_state", plan.figures.optimizer_state,
               OptimizerState(plan.request, optimized), faults);
}

namespace {

// Proofs by the program of one order hold only for that order; all other proofs hold for any order.
void CheckScope(std::string_view bound, std::string_view proof, BoundScope scope, bool is_own_order,
                std::vector<std::string>* faults) {
  const bool is_by_order =
      proof == NameOf(OverheadProof::kOneCut) || proof == NameOf(OverheadProof::kMoments);
  if (is_by_order == (scope == BoundScope::kAnyOrder)) {
    faults->push_back(fmt::format("certificate.{}.scope: {} does not match the proof {}", bound,
                                  NameOf(scope), proof));
  } else if (scope == BoundScope::kPlanOrder && is_own_order) {
    faults->push_back(
        fmt::format("certificate.{}.scope: the plan's order is the graph's own", bound));
  }
}

}  // namespace

void CheckLowerBound(const PlanFigures& figures, Cost overhead, Cost least_possible,
                     std::vector<std::string>* faults) {
  const std::optional<Cost>& bound = figures.lower_bound_cost;
  if (!bound) {
    // If nothing can be saved, the bound needs no search: it equals the overhead.
    if (overhead == least_possible) {
      faults->push_back("lower_bound_cost: null, but nothing is recomputed");
    }
    return;
  }
  const bool is_above = *bound < least_possible || *bound > overhead;
  if (!is_above && (!figures.is_optimal || *bound == overhead)) return;
  faults->push_back(fmt::format("lower_bound_cost: {} is {} the overhead of {}{}", bound->count(),
                                is_above ? "not a lower bound of" : "less than", overhead.count(),
                                is_above ? "" : ", which the plan calls optimal"));
}

void CheckCertificate(const Plan& plan, Cost overhead, Cost least_possible, Bytes peak,
                      bool is_own_order, std::vector<std::string>* faults) {
  const std::optional<Certificate>& certificate = plan.figures.certificate;
  const bool is_by_best = plan.request.algorithm == kBestAlgorithm;
  if (certificate.has_value() != is_by_best) {
    faults->push_back(is_by_best ? "certificate: missing"
                                 : "certificate: only the algorithm best has one");
  }
  if (!certificate) return;
  const std::optional<Cost>& bound = plan.figures.lower_bound_cost;
  if (!bound) return faults->push_back("certificate: lower_bound_cost is null");
  CompareClaim("certificate.overhead.gap_cost", certificate->gap, overhead - *bound, faults);
  CompareClaim("certificate.peak.gap_bytes", certificate->peak_gap, peak - certificate->peak.bytes,
               faults);
  if (certificate->peak.bytes > peak) {
    faults->push_back(
        fmt::format("certificate.peak: {} bytes is not a lower bound of the peak of {} bytes",
                    certificate->peak.bytes.count(), peak.count()));
  }
  if ((certificate->proof == OverheadProof::kRunOnce) != (*bound == least_possible)) {
    faults->push_back(fmt::format("certificate.overhead.proof: {} cannot prove {}",
                                  NameOf(certificate->proof), bound->count()));
  }
  if (certificate->proof == OverheadProof::kConstraints && plan.request.recompute.empty()) {
    faults->push_back("certificate.overhead.proof: constraints, but the request has no recompute");
  }
  CheckScope("overhead", NameOf(certificate->proof), certificate->scope, is_own_order, faults);
  CheckScope("peak", NameOf(certificate->peak.proof), certificate->peak.scope, is_own_order,
             faults);
}

void CheckCurve(const Plan& plan, Cost step, std::vector<std::string>* faults) {
  const PlanFigures& figures = plan.figures;
  if (figures.curve.empty()) return;
  if (plan.request.algorithm != kBestAlgorithm || plan.request.budget.is_given()) {
    faults->push_back("curve: only plans by best without a budget have one");
  }
  const CurvePoint plan_point{figures.peak, figures.overhead};
  for (const CurvePoint& point : figures.curve) {
    if (!point.least_peak || *point.least_peak <= point.peak) continue;
    faults->push_back(fmt::format("curve: a peak of {} bytes is below the minimum of {} bytes",
                                  point.peak.count(), point.least_peak->count()));
  }
  bool has_own = figures.curve.front() == plan_point;
  bool is_monotone = true;
  for (size_t i = 1; i < figures.curve.size(); ++i) {
    const CurvePoint& point = figures.curve[i];
    has_own = has_own || point == plan_point;
    const CurvePoint& before = figures.curve[i - 1];
    if (point.peak > before.peak && point.overhead < before.overhead) continue;
    is_monotone = false;
    faults->push_back(
        fmt::format("curve: point {} must have more memory and less time than the one before", i));
  }
  if (!has_own) return faults->push_back("curve: does not contain the plan");
  if (!is_monotone) return;
  const Cost max_added = MostAdded(kAddedPercentWithoutBudget, step);
  if (MinPeakWithin(figures.curve, max_added) == plan_point) return;
  faults->push_back(fmt::format("curve: another point that adds at most {:g} % has a lower peak",
                                kAddedPercentWithoutBudget));
}

void CompareRequest(const Plan& plan, Bytes peak, std::vector<std::string>* faults) {
  const PlanRequest& request = plan.request;
  const std::optional<Bytes> budget = request.budget.in_bytes();
  if (budget && peak > *budget) {
    faults->push_back(fmt::format("the peak of {} bytes is above the budget of {} bytes",
                                  peak.count(), budget->count()));
  }
  const std::optional<Bytes> paper_budget = request.paper_budget.in_bytes();
  if (paper_budget && plan.figures.paper.budget != paper_budget) {
    faults->push_back(
        fmt::format("paper_budget_bytes: {} was requested, but the plan has a different one",
                    paper_budget->count()));
  }
  if (request.setting && plan.figures.setting != request.setting) {
    faults->push_back(fmt::format("setting: {} was requested, but the plan has a different one",
                                  TextOf(*request.setting)));
  }
  const bool frees_at_last_read = plan.schedule.frees == FreePolicy::kLiveness;
  if (request.uses_liveness == frees_at_last_read) return;
  faults->push_back(fmt::format("liveness: {} was requested, but the schedule's frees are {}",
                                request.uses_liveness,
                                frees_at_last_read ? "not explicit" : "explicit"));
}

void ComparePeak(const Plan& plan, int32_t step, const std::vector<LiveBuffer>& live,
                 const std::function<std::string(const LiveBuffer&)>& name_of,
                 std::vector<std::string>* faults) {
  if (!plan.peak) return faults->push_back("peak: missing");
  if (plan.peak->step != step) {
    faults->push_back(fmt::format("peak: the plan says step {}, the replay finds step {}",
                                  plan.peak->step, step));
    return;
  }
  const std::vector<LiveBuffer>& claimed = plan.peak->live;
  const auto row = std::mismatch(claimed.begin(), claimed.end(), live.begin(), live.end()).second;
  if (row != live.end()) {
    faults->push_back(fmt::format("peak: row {} must be {} with {} bytes", row - live.begin(),
                                  name_of(*row), row->bytes.count()));
  } else if (claimed.size() > live.size()) {
    faults->push_back(fmt::format("peak: the plan has {} rows, the replay finds {} buffers",
                                  claimed.size(), live.size()));
  }
}

std::string_view DifferenceOf(const NodeLabel& claimed, const NodeLabel& derived) {
  if (claimed.name != derived.name) return "name";
  if (claimed.op != derived.op) return "op";
  return claimed.outputs != derived.outputs ? "outputs" : "";
}

}  // namespace ckplan
