#include "lib/plan/claims.h"

#include <algorithm>
#include <optional>

#include "lib/plan/knob.h"

namespace ckplan {

void CompareConstants(const ConstantMemory& derived, const Plan& plan,
                      std::vector<std::string>* faults) {
  const ConstantMemory& claimed = plan.figures.constants;
  CompareClaim("parameters", claimed.parameters, derived.parameters, faults);
  CompareClaim("parameter_gradients", claimed.parameter_gradients, derived.parameter_gradients,
               faults);
  CompareClaim("inputs", claimed.inputs, derived.inputs, faults);
  CompareClaim("optimizer_state", plan.figures.optimizer_state,
               OptimizerState(plan.request.optimizer, derived.parameter_gradients), faults);
}

void CheckLowerBound(const PlanFigures& figures, Cost overhead, Cost least_possible,
                     std::vector<std::string>* faults) {
  const std::optional<Cost>& bound = figures.lower_bound_cost;
  if (!bound) {
    // Where nothing is left to save, nothing needs a search: the bound is the overhead.
    if (overhead == least_possible) {
      faults->push_back("lower_bound_cost: null, but nothing is recomputed");
    }
    return;
  }
  const bool is_above = *bound < least_possible || *bound > overhead;
  if (!is_above && (!figures.is_optimal || *bound == overhead)) return;
  faults->push_back(fmt::format("lower_bound_cost: {} is {} the overhead of {}{}", bound->count(),
                                is_above ? "no bound of" : "less than", overhead.count(),
                                is_above ? "" : ", which is said to be optimal"));
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
    faults->push_back(fmt::format(
        "paper_budget_bytes: {} was asked for, but the result has another", paper_budget->count()));
  }
  if (request.setting && plan.figures.setting != request.setting) {
    faults->push_back(fmt::format("setting: {} was asked for, but the result has another",
                                  TextOf(*request.setting)));
  }
  const bool frees_at_last_read = plan.schedule.frees == FreePolicy::kLiveness;
  if (request.uses_liveness == frees_at_last_read) return;
  faults->push_back(fmt::format("liveness: {} was asked for, but the schedule's frees are {}",
                                request.uses_liveness, frees_at_last_read ? "not" : "explicit"));
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
