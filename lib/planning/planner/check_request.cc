#include "lib/planning/planner/check_request.h"

#include <fmt/format.h>

#include <string>

#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

Error ForwardOnlyError(std::string_view what, Remedy remedy) {
  return Error{ErrorCode::kUsage,
               fmt::format("{} only for forward graphs; this is a joint graph", what),
               {},
               std::move(remedy)};
}

Remedy LeaveOutRemedy(std::string_view field) { return {"leave out", {{std::string(field), ""}}}; }

Result<Done> CheckObjective(const SolverInfo& info, const PlanRequest& request) {
  if (request.objective != Objective::kMemory || info.takes_objective) return Done{};
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("the objective \"memory\" works only with exact-dp and approx-dp, not with {}",
                  info.name));
}

Result<Done> CheckDecisionsUsed(const SolverInfo& info, const PlanRequest& request) {
  if (!request.decisions || info.name == kGivenAlgorithm) return Done{};
  return Error{
      ErrorCode::kUsage,
      fmt::format("decisions apply only to the algorithm given; {} makes its own", info.name),
      {},
      {"add", {{"algorithm", std::string(kGivenAlgorithm)}}}};
}

Result<Done> CheckStepOrder(const SolverInfo& info, const PlanRequest& request) {
  const bool takes_any = info.name == kBestAlgorithm || info.name == kGivenAlgorithm;
  if (request.order == StepOrder::kModel || takes_any) return Done{};
  return Error{
      ErrorCode::kUsage,
      fmt::format("{} uses the model's order of operations; only best and given can change it",
                  info.name),
      {},
      {"use", {{"algorithm", std::string(kBestAlgorithm)}}}};
}

Result<Done> CheckOneBudget(const PlanRequest& request) {
  const int budgets = int{request.budget.is_given()} + int{request.total_budget.is_given()} +
                      int{request.memory.is_given()} + int{request.paper_budget.is_given()} +
                      int{request.added_time.is_given()};
  if (budgets <= 1) return Done{};
  return MakeError(ErrorCode::kUsage, "give one budget or one added time, not several");
}

// A balance chooses among plans, but decisions or a knob setting fix the plan.
Result<Done> CheckBalance(const SolverInfo& info, const PlanRequest& request) {
  if (PeakBudgetOf(request).kind != Budget::Kind::kBalanced) return Done{};
  if (info.name == kGivenAlgorithm) {
    return Error{ErrorCode::kUsage,
                 "a balanced budget needs an algorithm that finds plans; given only evaluates one",
                 {},
                 {"use", {{"algorithm", std::string(kBestAlgorithm)}}}};
  }
  if (!request.setting) return Done{};
  return Error{
      ErrorCode::kUsage,
      fmt::format("a balanced budget chooses the settings of {}; it cannot be combined with {}",
                  info.name, TextOf(*request.setting)),
      {},
      LeaveOutRemedy("setting")};
}

// Rejects fields that only apply to the nodes of a forward graph.
Result<Done> CheckForRuns(const PlanRequest& request) {
  if (request.objective == Objective::kMemory) {
    return ForwardOnlyError("the objective \"memory\" is", LeaveOutRemedy("objective"));
  }
  if (request.granularity == Granularity::kLayer) {
    return ForwardOnlyError("layers are", LeaveOutRemedy("granularity"));
  }
  if (request.paper_budget.is_given()) {
    return ForwardOnlyError("a paper budget is", LeaveOutRemedy("paper_budget"));
  }
  if (request.setting) return ForwardOnlyError("knobs are", LeaveOutRemedy("setting"));
  return Done{};
}

// Rejects fields that an algorithm for forward graphs doesn't support.
Result<Done> CheckForNodes(const SolverInfo& info, const TensorGraph& graph,
                           const PlanRequest& request) {
  CKPLAN_RETURN_IF_ERROR(CheckObjective(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckSetting(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckStepOrder(info, request));
  return CheckConstraints(graph, request);
}

Result<Done> CheckReleases(const PlanRequest& request) {
  if (!request.decisions || !request.decisions->has_frees()) return Done{};
  if (request.uses_liveness) {
    return Error{ErrorCode::kUsage,
                 "the decisions release tensors, which works only without liveness",
                 {},
                 {"add", {{"liveness", ""}}}};
  }
  if (request.granularity == Granularity::kNode) return Done{};
  return MakeError(ErrorCode::kUsage,
                   "decisions that release tensors cannot be combined with an order of layers");
}

// `best` supports only decisions on nodes, with liveness.
Result<Done> CheckForBest(const PlanRequest& request) {
  if (request.paper_budget.is_given()) {
    return Error{ErrorCode::kUsage,
                 "best has no paper budget; only an algorithm whose paper defines a budget has one",
                 {},
                 {"use", {{"algorithm", "exact-dp"}}}};
  }
  if (request.uses_liveness && request.granularity == Granularity::kNode) return Done{};
  return Error{ErrorCode::kUsage,
               "best always plans nodes, with liveness",
               {},
               {"use", {{"algorithm", "approx-dp"}}}};
}

Result<Done> CheckBackward(const SolverInfo& info, const TensorGraph& graph,
                           const PlanRequest& request) {
  if (request.backward == BackwardSteps::kByNode && !request.uses_liveness) {
    return Error{ErrorCode::kUsage,
                 "without liveness, gradients are released a segment at a time, so backward steps "
                 "cannot be by input",
                 {},
                 LeaveOutRemedy("backward")};
  }
  if (graph.backward() == BackwardForm::kByNode || !RunsBackwardByNode(info)) return Done{};
  return Error{ErrorCode::kUsage,
               fmt::format("{} runs backward node by node; only algorithms that choose which "
                           "tensors to keep can run it by input",
                           info.name),
               {},
               {"use", {{"algorithm", "approx-dp"}}}};
}

Result<Done> CheckForForward(const SolverInfo& info, const TensorGraph& graph,
                             const PlanRequest& request) {
  if (graph.nodes().empty()) {
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format("\"{}\" has no activations, so there is nothing to plan", graph.name()));
  }
  CKPLAN_RETURN_IF_ERROR(CheckObjective(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckSetting(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckDecisionsUsed(info, request));
  CKPLAN_RETURN_IF_ERROR(CheckReleases(request));
  CKPLAN_RETURN_IF_ERROR(CheckStepOrder(info, request));
  const bool is_of_nodes = request.uses_liveness && request.granularity == Granularity::kNode;
  if (request.order != StepOrder::kModel && !is_of_nodes) {
    return MakeError(ErrorCode::kUsage, "steps in any order need liveness and cannot be layers");
  }
  CKPLAN_RETURN_IF_ERROR(CheckConstraints(graph, request));
  CKPLAN_RETURN_IF_ERROR(CheckOneBudget(request));
  CKPLAN_RETURN_IF_ERROR(CheckBalance(info, request));
  if (info.name == kBestAlgorithm) CKPLAN_RETURN_IF_ERROR(CheckForBest(request));
  return CheckBackward(info, graph, request);
}

// Rejects offload limits for plans that keep every value on the device.
Result<Done> CheckOffload(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request) {
  if (request.offload) {
    if (step.is_joint()) return Done{};
    return MakeError(ErrorCode::kUsage, "offloading needs a joint graph; this is a forward graph");
  }
  for (const RequestField& field : RequestFields()) {
    if (!field.scope.is_of_offload || IsDefault(field, request)) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("{} applies only to plans that offload values to the host",
                             PhraseOf(field, request)),
                 {},
                 {"add", {{"offload", "pcie4"}}}};
  }
  const bool only_moves = NeedsLink(info);
  if (!only_moves) return Done{};
  return Error{ErrorCode::kUsage,
               fmt::format("{} only plans offloading to the host", info.name),
               {},
               {"add", {{"offload", "pcie4"}}}};
}

Result<Done> CheckForJoint(const SolverInfo& info, const TrainingStep& step,
                           const PlanRequest& request) {
  if (!CanPlan(info, step)) {
    Error error = ForwardOnlyError(fmt::format("{} is", info.name),
                                   {"use", {{"algorithm", std::string(kBestAlgorithm)}}});
    if (request.offload && step.has_forward()) {
      error.notes.push_back(
          "a step that can offload values to the host is planned as a joint graph");
    } else if (request.gradients == ParameterGradients::kArriving) {
      error.notes.push_back("a step with arriving parameter gradients is planned as a joint graph");
    }
    return error;
  }
  if (info.name == kAutoAlgorithm) {
    CKPLAN_RETURN_IF_ERROR(CheckSetting(info, request));
  } else {
    CKPLAN_RETURN_IF_ERROR(PlansRuns(info) ? CheckForRuns(request)
                                           : CheckForNodes(info, step.forward(), request));
  }
  CKPLAN_RETURN_IF_ERROR(CheckDecisionsUsed(info, request));
  if (!request.uses_liveness) {
    return ForwardOnlyError("planning without liveness is", LeaveOutRemedy("liveness"));
  }
  if (request.backward == BackwardSteps::kByInput) {
    return ForwardOnlyError("backward steps by input are", LeaveOutRemedy("backward"));
  }
  CKPLAN_RETURN_IF_ERROR(CheckOneBudget(request));
  return CheckBalance(info, request);
}

}  // namespace

Result<Done> CheckSetting(const SolverInfo& info, const PlanRequest& request) {
  if (!request.setting) return Done{};
  const std::string& wanted = request.setting->knob;
  const KnobInfo* const knob = InfoOf(info.knob);
  if (info.name == kAutoAlgorithm) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("auto tries the settings of all algorithms; name the algorithm that "
                    "{} belongs to",
                    wanted));
  }
  if (knob == nullptr || knob->name != wanted) {
    const std::string has = knob == nullptr ? " or any other"
                                            : fmt::format("; its knob is {}, {}: {}", knob->name,
                                                          knob->meaning, knob->range);
    return MakeError(ErrorCode::kUsage, fmt::format("{} has no knob {}{}", info.name, wanted, has));
  }
  if (!request.paper_budget.is_given()) return Done{};
  return MakeError(ErrorCode::kUsage, fmt::format("a paper budget and {} both set the knob of {}",
                                                  TextOf(*request.setting), info.name));
}

Result<Done> CheckRequest(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request) {
  CKPLAN_RETURN_IF_ERROR(CheckOffload(info, step, request));
  return step.is_joint() ? CheckForJoint(info, step, request)
                         : CheckForForward(info, step.forward(), request);
}

}  // namespace ckplan
