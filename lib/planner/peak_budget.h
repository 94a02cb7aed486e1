// The budget of a request on the simulated peak, and the error for what does not fit it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// The budget on the peak, with constants or without.
const Budget& PeakBudgetOf(const PlanRequest& request);
// What that budget covers beside activations: nothing, or all that no plan changes.
Bytes ConstantsInBudget(const TensorGraph& graph, const PlanRequest& request);
// That budget as bytes of activations alone, for a graph with that peak of keeping everything,
// where the budget covers so much beside it. Nothing if the request states no amount: it has none,
// or asks for the least.
std::optional<Bytes> BudgetInBytes(const PlanRequest& request, Bytes baseline_peak, Bytes covered);
// The same of a forward graph. The budget must be given, in bytes or per cent.
Bytes ActivationBudget(const TensorGraph& graph, const PlanRequest& request);

// kInfeasible: `who` finds no plan within the budget on the peak; `least` is the peak that it can
// reach, and `where` the step that needs it, in words. The message adds to both what the request's
// budget covers beside the peak.
Error Infeasible(const PlanRequest& request, std::string_view who, Bytes budget, Bytes least,
                 Bytes covered, const std::string& where);
// Says this of a forward graph and the request's budget on it.
Error Infeasible(const TensorGraph& graph, const PlanRequest& request, std::string_view who,
                 Bytes least, const Step& step);

// Whether an algorithm that finds its least peak by a solver has not proven it, so that a smaller
// budget than the one that a refusal names may have a plan; and the note that says so.
bool MayReachLess(const SolverInfo& info, bool is_proven);
inline constexpr std::string_view kMayReachLess =
    "it is not proven that no smaller budget has a plan: the search for the least was cut short";

}  // namespace ckplan
