// Constraints on plans, read as pattern files, for two small graphs.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/request_flags.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/testdata_graphs.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_plan.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/plan/check_constraints.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/planner/planner.h"

namespace ckplan {
namespace {

constexpr size_t kMaxPatternBytes =
    2000;  // More bytes take longer to match, but find no more faults.

// Reads three pattern files from one text: the lines after the headings "keep", "recompute" and
// "never_rerun", each of which may occur several times.
PlanRequest RequestOf(std::string_view text) {
  PlanRequest request;
  request.effort = SearchEffort::kQuick;
  NamePatterns* patterns = &request.keep;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line == "keep") {
      patterns = &request.keep;
    } else if (line == "recompute") {
      patterns = &request.recompute;
    } else if (line == "never_rerun") {
      patterns = &request.never_rerun;
    } else {
      for (std::string& pattern : PatternsInText(line)) patterns->push_back(std::move(pattern));
    }
  }
  return request;
}

// The parts of a step that constraints depend on.
struct NaiveStep {
  NodeId rerun;               // The node or operation that the step runs, if it can rerun.
  std::vector<NodeId> reads;  // The producers of its operands, and of the tensors that they alias.
  bool is_backward = false;
};

std::vector<NaiveStep> StepsOf(const TensorGraph& graph, const Schedule& schedule) {
  std::vector<NaiveStep> steps;
  for (const Step& step : schedule.steps) {
    if (step.is_free()) continue;
    NaiveStep& naive = steps.emplace_back();
    if (step.kind == StepKind::kLoss) continue;
    const Node& node = graph.node(step.node());
    naive.is_backward = step.kind == StepKind::kBackward;
    if (!naive.is_backward) naive.rerun = step.node();
    for (const TensorId read : naive.is_backward ? node.backward_reads : node.inputs) {
      naive.reads.push_back(graph.tensor(read).producer);
    }
  }
  return steps;
}

std::vector<NaiveStep> StepsOf(const JointGraph& graph, const Schedule& schedule) {
  std::vector<NaiveStep> steps;
  for (const Step& step : schedule.steps) {
    const Operation& op = graph.op(step.node());
    NaiveStep& naive = steps.emplace_back(NaiveStep{step.node(), {}, IsOfBackwardPass(op)});
    for (const ValueId read : op.reads) naive.reads.push_back(graph.value(read).producer);
  }
  return steps;
}

// For every read, searches backwards for the run that computed the operand, in quadratic time.
bool SatisfiesNaively(const std::vector<NaiveStep>& steps, const Constraints& constraints) {
  const auto runs_in = [&](NodeId node, size_t end) {
    return std::count_if(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(end),
                         [&](const NaiveStep& step) { return step.rerun == node; });
  };
  const auto first_backward = std::find_if(steps.begin(), steps.end(),
                                           [](const NaiveStep& step) { return step.is_backward; });
  size_t end = 0;  // End of the forward pass, including the loss (which has no node).
  for (size_t k = 0; k < static_cast<size_t>(first_backward - steps.begin()); ++k) {
    if (steps[k].rerun.is_none() || runs_in(steps[k].rerun, k) == 0) end = k + 1;
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    const NodeId node = steps[k].rerun;
    const bool is_again = !node.is_none() && runs_in(node, k) > 0;
    if (is_again && constraints.runs_once[node]) return false;
    if (!steps[k].is_backward && !(is_again && k >= end)) continue;
    for (const NodeId producer : steps[k].reads) {
      if (producer.is_none() || !constraints.is_recomputed[producer]) continue;
      size_t made = k;
      while (steps[--made].rerun != producer) {
      }
      if (made < end || runs_in(producer, made) == 0) return false;
    }
  }
  return true;
}

template <typename Graph>
void CheckAgreement(const Graph& graph, const PlanRequest& request, const Constraints& constraints,
                    const Schedule& schedule) {
  const std::vector<std::string> broken = BrokenConstraints(graph, request, schedule);
  CKPLAN_CHECK(broken.empty() == SatisfiesNaively(StepsOf(graph, schedule), constraints),
               broken.empty() ? "the checker reports every broken constraint" : broken.front());
}

std::vector<std::string> FaultsOf(const TensorGraph& graph, const Plan& plan) {
  return CheckPlan(graph, plan);
}
std::vector<std::string> FaultsOf(const JointGraph& graph, const Plan& plan) {
  return CheckPlan(graph, plan);
}

// `make_plan` plans a request for the graph.
template <typename Graph, typename MakePlanOf>
void PlanWith(std::string_view algorithm, const Graph& graph, PlanRequest request,
              MakePlanOf make_plan) {
  request.algorithm = algorithm;
  for (const Budget::Kind kind : {Budget::Kind::kNone, Budget::Kind::kMin}) {
    request.budget.kind = kind;
    const Result<Plan> plan = make_plan(request);
    const Result<Constraints> constraints = ConstraintsOf(graph, request);
    if (!constraints.ok()) {
      CKPLAN_CHECK(!plan.ok() && plan.error().code == ErrorCode::kUsage,
                   "no plan is found for constraints that don't fit the graph");
      return;
    }
    CKPLAN_CHECK(plan.ok(), plan.error().message);
    for (const std::string& fault : FaultsOf(graph, *plan)) {
      CKPLAN_CHECK(fault.empty(), fmt::format("{}: {}", algorithm, fault));
    }
    CheckAgreement(graph, request, *constraints, plan->schedule);
    const Result<Plan> again = ReadPlanJson(WritePlanJson(*plan, graph), graph, "plan.json");
    CKPLAN_CHECK(again.ok() && *again == *plan, "writing and reading a plan preserves it");
    // A plan made without the constraints may break them; both checks must then report it.
    PlanRequest free = request;
    free.keep = free.recompute = free.never_rerun = {};
    CheckAgreement(graph, request, *constraints, make_plan(free).value().schedule);
  }
}

}  // namespace

void FuzzConstraints(FuzzInput input) {
  if (input.size() > kMaxPatternBytes) return;
  const PlanRequest request = RequestOf(TextOf(input));
  const auto plan = [](const PlanRequest& asked) { return MakePlan(SkipsGraph(), asked, {}); };
  for (const std::string_view algorithm : {"chen-sqrt", "dtr", "best"}) {
    PlanWith(algorithm, SkipsGraph(), request, plan);
  }
  const auto plan_joint = [](const PlanRequest& asked) {
    return MakePlan(JointNetGraph(), asked, {});
  };
  for (const std::string_view algorithm : {"keep-all", "dtr", "torch-budget", "best"}) {
    PlanWith(algorithm, JointNetGraph(), request, plan_joint);
  }
}

}  // namespace ckplan
