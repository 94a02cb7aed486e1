#include "lib/planning/algorithms/best/kinship.h"

#include <algorithm>

namespace ckplan {
// An operation's number is above those of its ancestors.
std::vector<bool> AncestorsOf(const RunProblem& problem, int32_t op) {
  std::vector<bool> is_ancestor(At(problem.op_count));
  is_ancestor[At(op)] = true;
  for (int32_t next = op; next >= 0; --next) {
    if (!is_ancestor[At(next)]) continue;
    for (const int32_t read : problem.reads[next]) {
      is_ancestor[At(problem.maker[At(read)])] = true;
    }
  }
  is_ancestor[At(op)] = false;
  return is_ancestor;
}

std::vector<bool> DescendantsOf(const RunProblem& problem, int32_t op) {
  std::vector<bool> is_descendant(At(problem.op_count));
  is_descendant[At(op)] = true;
  for (int32_t next = op + 1; next < problem.op_count; ++next) {
    const std::span<const int32_t> reads = problem.reads[next];
    is_descendant[At(next)] = std::any_of(reads.begin(), reads.end(), [&](int32_t read) {
      return is_descendant[At(problem.maker[At(read)])];
    });
  }
  is_descendant[At(op)] = false;
  return is_descendant;
}

std::vector<OpId> LongestChain(const RunProblem& problem, std::span<const OpId> ops) {
  std::vector<OpId> sorted(ops.begin(), ops.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::vector<OpId>> chains;  // The longest chain that ends at each operation.
  for (size_t i = 0; i < sorted.size(); ++i) {
    const std::vector<bool> is_ancestor = AncestorsOf(problem, sorted[i].index());
    std::vector<OpId> chain;
    for (size_t k = 0; k < i; ++k) {
      if (!is_ancestor[At(sorted[k].index())]) continue;
      if (chains[k].size() > chain.size()) chain = chains[k];
    }
    chain.push_back(sorted[i]);
    chains.push_back(std::move(chain));
  }
  std::vector<OpId> longest;
  for (const std::vector<OpId>& chain : chains) {
    if (chain.size() > longest.size()) longest = chain;
  }
  return longest;
}

}  // namespace ckplan
