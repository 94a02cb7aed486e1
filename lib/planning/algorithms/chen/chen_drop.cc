#include "lib/planning/algorithms/chen/chen_drop.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/plan/fixed_plan.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropBnRelu(const Problem& problem,
                                                              const SolveLimits&) {
  IdVector<NodeId, bool> is_kept(problem.vertices.size());
  for (const NodeId v : problem.vertices.ids()) {
    is_kept[v] = PriceOf(problem.graph.node(v).op) != OpPrice::kNormOrActivation;
  }
  SolveOutcome outcome = PlanOfKept(
      problem, std::move(is_kept),
      "heuristic: drops the results of normalisations and activations, keeps all others");
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

namespace {

// Divides the total, which is below kMaxTotalCost, because multiplying a node's cost by n could
// overflow.
bool CostsLessThanAverage(const VertexGraph& vertices, NodeId v) {
  const auto n = static_cast<int64_t>(vertices.size());
  const int64_t total = vertices.total_time().count();
  const int64_t cost = vertices.time(v).count();
  return cost < total / n || (cost == total / n && total % n != 0);
}

IdVector<NodeId, bool> ChooseKept(const Problem& problem) {
  IdVector<NodeId, bool> is_kept(problem.vertices.size(), true);
  bool has_known_name = false;
  for (const NodeId v : problem.vertices.ids()) {
    const OpPrice price = PriceOf(problem.graph.node(v).op);
    is_kept[v] = price == OpPrice::kCostly || price == OpPrice::kUnknown;
    has_known_name |= price != OpPrice::kUnknown;
  }
  if (has_known_name) return is_kept;
  for (const NodeId v : problem.vertices.ids()) {
    is_kept[v] = !CostsLessThanAverage(problem.vertices, v);
  }
  return is_kept;
}

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropCheap(const Problem& problem,
                                                             const SolveLimits&) {
  SolveOutcome outcome =
      PlanOfKept(problem, ChooseKept(problem),
                 "heuristic: drops the results of cheap operations, keeps all others");
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

SolveOutcome PlanOfKept(const Problem& problem, IdVector<NodeId, bool> is_kept,
                        std::string guarantee) {
  SolveOutcome outcome;
  for (const NodeId v : problem.vertices.ids()) {
    if (is_kept[v]) {
      outcome.paper.peak += problem.vertices.memory(v);
    } else {
      outcome.paper.overhead += problem.vertices.time(v);
    }
  }
  outcome.strategy = KeptSet{std::move(is_kept)};
  outcome.guarantee = std::move(guarantee);
  return outcome;
}

namespace {

// Parts of the names of other frameworks' operators ("BatchNorm2d", "Conv+Relu"), in lower case;
// "elu" is in relu, gelu, ... Costly parts are tried first.
constexpr std::array kCostlyParts = {"conv",   "gemm", "matmul", "linear",    "dense",
                                     "einsum", "lstm", "gru",    "attention", "embedding"};
constexpr std::array kNormOrActivationParts = {
    "norm", "relu", "elu",  "gelu",     "sigmoid",  "tanh",   "swish",
    "silu", "mish", "clip", "softplus", "softsign", "shrink", "activation"};
constexpr std::array kOtherCheapParts = {"pool", "dropout"};
// Match whole names only: these are so short that other names contain them by chance.
constexpr std::array kOtherCheapNames = {"erf", "exp", "log", "lrn", "abs", "neg", "sqrt"};
constexpr std::array kCostlyNames = {"rnn", "fc"};

template <typename Names>
bool HasPart(const std::string& op, const Names& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return op.find(part) != std::string::npos; });
}

template <typename Names>
bool IsOneOf(const std::string& op, const Names& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

OpPrice PriceOfRule(const OpRule& rule) {
  if (rule.is_costly()) return OpPrice::kCostly;
  if (rule.has(traits::kActivation | traits::kNormalisation)) return OpPrice::kNormOrActivation;
  return rule.is_cheap() ? OpPrice::kOtherCheap : OpPrice::kUnknown;
}

}  // namespace

OpPrice PriceOf(std::string_view op) {
  if (const OpRule& rule = RuleOf(op); rule.is_known()) return PriceOfRule(rule);
  const std::string lower = LowerCase(op);
  if (IsOneOf(lower, kCostlyNames) || HasPart(lower, kCostlyParts)) return OpPrice::kCostly;
  // "MaxPool+Relu" counts as pooling.
  if (HasPart(lower, kOtherCheapParts) || IsOneOf(lower, kOtherCheapNames)) {
    return OpPrice::kOtherCheap;
  }
  if (HasPart(lower, kNormOrActivationParts)) return OpPrice::kNormOrActivation;
  return OpPrice::kUnknown;
}

}  // namespace ckplan
