#include "cli/ckplan/planning.h"

#include <utility>

#include "cli/common/size_arg.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

Result<Done> CheckOneBudget(const Options& options) {
  const int given = int{options.budget.has_value()} + int{options.budget_total.has_value()} +
                    int{options.paper_budget.has_value()};
  if (given <= 1) return Done{};
  return MakeError(ErrorCode::kUsage,
                   "--budget, --budget-total and --paper-budget exclude each other");
}

}  // namespace

void AddPlanningOptions(CommandLine& line, Options& options) {
  line.Value("-b,--budget", "SIZE|P%|min", "on the peak: 16GiB, 16GB, 60% of keep-all's, or min",
             &options.budget);
  line.Value("--budget-total", "SIZE|P%", "likewise, with parameters and inputs included",
             &options.budget_total);
  line.Value("--paper-budget", "SIZE|min", "on the algorithm's own objective, as in its paper",
             &options.paper_budget);
  line.Choice("--objective", {"time", "memory"},
              "of exact-dp and approx-dp: least time, or memory-centric", &options.objective);
  AddGranularityOption(line, options);
  line.Choice("--optimizer", {"sgd", "momentum", "adam"}, "whose state counts as constant",
              &options.optimizer);
  line.Flag("--no-liveness", "release tensors a segment at a time, as the papers do by themselves",
            &options.has_no_liveness);
}

Result<PlannerRequest> PlannerRequestOf(const Options& options, std::string algorithm) {
  PlannerRequest request;
  CKPLAN_RETURN_IF_ERROR(CheckOneBudget(options));
  request.algorithm = std::move(algorithm);
  CKPLAN_RETURN_IF_ERROR(FindSolver(request.algorithm));
  if (options.budget) {
    CKPLAN_ASSIGN_OR_RETURN(request.budget, ParseBudget(*options.budget, "--budget", {}));
  }
  if (options.budget_total) {
    const BudgetForms forms{.percent = true, .min = false};
    CKPLAN_ASSIGN_OR_RETURN(request.budget,
                            ParseBudget(*options.budget_total, "--budget-total", forms));
    request.includes_constants = true;
  }
  if (options.paper_budget) {
    const BudgetForms forms{.percent = false, .min = true};
    CKPLAN_ASSIGN_OR_RETURN(request.paper_budget,
                            ParseBudget(*options.paper_budget, "--paper-budget", forms));
  }
  request.objective = options.objective == "memory" ? Objective::kMemory : Objective::kTime;
  request.uses_liveness = !options.has_no_liveness;
  if (options.granularity == "layer") request.granularity = Granularity::kLayer;
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kMomentum, Optimizer::kAdam}) {
    if (options.optimizer == NameOf(optimizer)) request.optimizer = optimizer;
  }
  return request;
}

// Adds to a plan what the planner cannot know.
void Complete(const Source& source, Plan* plan) {
  plan->request.cost_model = source.cost_model;
  plan->request.cost_unit = source.cost_unit;
  plan->request.autograd = source.autograd;
  plan->request.activation_type = source.activation_type;
  plan->request.align_bytes = source.align_bytes;
  plan->model = source.identity;
}

std::string BudgetText(const Options& options) {
  if (options.budget) return "--budget " + *options.budget;
  if (options.budget_total) return "--budget-total " + *options.budget_total;
  return "";
}

}  // namespace ckplan
