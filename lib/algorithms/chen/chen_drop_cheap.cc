#include "lib/algorithms/chen/chen_drop_cheap.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "lib/ops/op_table.h"
#include "lib/plan/fixed_plan.h"

namespace ckplan {
namespace {

// What names of other frameworks' operators are judged by: "BatchNorm2d", "Conv+Relu". Parts of
// names, in lower case; "elu" is in relu, gelu, ... Costly ones are looked for first.
constexpr std::array kCostlyParts = {"conv",   "gemm", "matmul", "linear",    "dense",
                                     "einsum", "lstm", "gru",    "attention", "embedding"};
constexpr std::array kCheapParts = {"norm",  "relu", "elu",     "gelu",      "sigmoid",  "tanh",
                                    "swish", "silu", "mish",    "softplus",  "softsign", "shrink",
                                    "pool",  "clip", "dropout", "activation"};
// Whole names, since they are so short that other names contain them by chance.
constexpr std::array kCheapNames = {"erf", "exp", "log", "lrn", "abs", "neg", "sqrt"};
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

// Divides the total, which is below kMaxTotalCost, since n times the cost of a node may overflow.
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
    is_kept[v] = price != OpPrice::kCheap;
    has_known_name |= price != OpPrice::kUnknown;
  }
  if (has_known_name) return is_kept;
  for (const NodeId v : problem.vertices.ids()) {
    is_kept[v] = !CostsLessThanAverage(problem.vertices, v);
  }
  return is_kept;
}

}  // namespace

OpPrice PriceOf(std::string_view op) {
  if (const OpRule& rule = RuleOf(op); rule.is_known()) {
    return rule.is_costly()  ? OpPrice::kCostly
           : rule.is_cheap() ? OpPrice::kCheap
                             : OpPrice::kUnknown;
  }
  std::string lower(op);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (IsOneOf(lower, kCostlyNames) || HasPart(lower, kCostlyParts)) return OpPrice::kCostly;
  if (IsOneOf(lower, kCheapNames) || HasPart(lower, kCheapParts)) return OpPrice::kCheap;
  return OpPrice::kUnknown;
}

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropCheap(const Problem& problem,
                                                             const SolveLimits&) {
  KeptSet kept{ChooseKept(problem)};
  SolveOutcome outcome;
  for (const NodeId v : problem.vertices.ids()) {
    if (kept.is_kept[v]) {
      outcome.paper.peak += problem.vertices.memory(v);
    } else {
      outcome.paper.overhead += problem.vertices.time(v);
    }
  }
  outcome.strategy = std::move(kept);
  outcome.guarantee = "heuristic: results of cheap operations are dropped, all others kept";
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

}  // namespace ckplan
