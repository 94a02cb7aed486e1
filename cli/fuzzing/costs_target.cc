#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/problem/cost/table.h"

namespace ckplan {

void FuzzCosts(FuzzInput input) {
  const Result<CostTable> workspaces = ParseWorkspaceTable(TextOf(input), "workspaces.json");
  if (workspaces.ok()) {
    for (const auto& [name, row] : *workspaces) {
      CKPLAN_CHECK(row.forward_workspace >= Bytes(0) && row.backward_workspace >= Bytes(0),
                   "workspaces are no less than nothing");
    }
  }
  const Result<CostTable> table = ParseCostTable(TextOf(input), "costs.json");
  if (!table.ok()) return;
  std::vector<std::string> names;
  for (const auto& [name, cost] : *table) {
    names.push_back(name);
    CKPLAN_CHECK(cost.forward >= Cost(1) && cost.backward >= Cost(1), "costs are at least 1");
    CKPLAN_CHECK(cost.forward <= kMaxTotalCost && cost.backward <= kMaxTotalCost,
                 "costs are such that a graph may have them");
    CKPLAN_CHECK(cost.forward_workspace >= Bytes(0) && cost.backward_workspace >= Bytes(0),
                 "workspaces are no less than nothing");
  }
  CKPLAN_CHECK(LookUpCosts(*table, names, "costs.json").ok(), "every name of a table is found");
  names.push_back("a name that the table does not have");
  CKPLAN_CHECK(table->contains(names.back()) || !LookUpCosts(*table, names, "costs.json").ok(),
               "a missing name is refused");
}

}  // namespace ckplan
