// Measured costs: the file that `ckexec profile` writes and `--cost file:costs.json` reads.
//
//   {"schema_version": "1.0", "unit": "ns", "nodes": [
//     {"name": "conv1", "forward_cost": 41234, "backward_cost": 90210,
//      "forward_workspace_bytes": 0, "backward_workspace_bytes": 1048576}, ...]}
//
// A node is found by its name in the graph; schemas/costs.schema.json describes the file.
// Workspaces alone are read from such a file, too, and from what `ckexec profile --device` writes,
// which has no costs: schemas/workspaces.schema.json. Costs may be fractions in the file: they are
// rounded to the nearest integer here, at least 1.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct MeasuredCost {
  Cost forward;
  Cost backward;
  Bytes forward_workspace;
  Bytes backward_workspace;

  bool operator==(const MeasuredCost&) const = default;
};

using CostTable = std::map<std::string, MeasuredCost, std::less<>>;

// kIo: the file cannot be read. kInvalidInput: the text is not a cost file; the message lists every
// fault.
Result<CostTable> ReadCostTable(const std::string& path);
Result<CostTable> ParseCostTable(std::string_view text, const std::string& path);

// Returns the costs of the nodes with these names, in their order. kInvalidInput: names are missing
// from the table; the message lists them.
Result<std::vector<MeasuredCost>> LookUpCosts(const CostTable& table,
                                              const std::vector<std::string>& names,
                                              const std::string& path);

// Sets each node's costs and workspaces to the values that the file at `path` has for its name.
// Errors are those of ReadCostTable and LookUpCosts.
Result<Done> SetMeasuredCosts(const std::string& path, IdVector<NodeId, Node>& nodes);

// Sets each node's workspaces to the values that the file at `path` has for its name, which is a
// file of workspaces or of costs.
Result<Done> SetWorkspaces(const std::string& path, IdVector<NodeId, Node>& nodes);
// As ParseCostTable, for the workspaces alone; the costs in the table are 0.
Result<CostTable> ParseWorkspaceTable(std::string_view text, const std::string& path);

}  // namespace ckplan
