#include "cli/ckplan/chain_remark.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {
namespace {

// Those that decide themselves, and need neither a budget to do so nor a link to the host.
std::vector<std::string_view> AlgorithmsForAnyGraph() {
  std::vector<std::string_view> names;
  for (const SolverInfo* info : ListedAlgorithms()) {
    const bool decides =
        info->guarantee == Guarantee::kHeuristic || info->guarantee == Guarantee::kOptimalInClass;
    const bool takes_any = info->graphs == GraphClass::kAnyDag && info->name != kAutoAlgorithm;
    const bool needs_link = info->prepare_offload != nullptr;
    if (decides && takes_any && !needs_link) names.push_back(info->name);
  }
  return names;
}

}  // namespace

// The first block is one vertex and the last is kept anyway, so a cut needs a block between them.
bool CanBeCut(const TensorGraph& graph) {
  constexpr int32_t kFirstAndLast = 2;
  return FindChain(graph, VertexGraph(graph)).block_count > kFirstAndLast;
}

std::string WhyNothingToCut(const Source& source, const Plan& plan) {
  if (plan.figures.overhead != Cost(0)) return "";
  const auto info = FindSolver(plan.request.algorithm);
  const bool is_for_chains = info.ok() && (*info)->graphs == GraphClass::kChainOfSplittingVertices;
  if (!is_for_chains || CanBeCut(source.graph)) return "";
  return fmt::format(
      "{0} keeps everything: no single tensor splits this graph in two; algorithms for any graph: "
      "{1}",
      plan.request.algorithm, fmt::join(AlgorithmsForAnyGraph(), ", "));
}

}  // namespace ckplan
