#include "lib/problem/cost/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/json_extent.h"

namespace ckplan {

namespace {

constexpr size_t kShownFaults =
    8;  // Further faults are only counted, so that a message stays readable.

// The two kinds of files, and what messages say of them.
struct TableKind {
  std::string_view name;
  std::string_view write_it, measure_model;  // Advice.
  bool has_costs = true;
};
constexpr TableKind kCosts{"cost file", "write it with `ckexec profile MODEL -o costs.json`",
                           "measure this very model: `ckexec profile MODEL -o costs.json`"};
constexpr TableKind kWorkspaces{
    "file of workspaces", "write it with `ckexec profile --device NAME MODEL -o workspaces.json`",
    "profile this very model: `ckexec profile --device NAME MODEL -o workspaces.json`", false};

Error Invalid(const TableKind& kind, const std::string& path,
              const std::vector<std::string>& faults, std::string_view advice) {
  Error error = MakeError(
      ErrorCode::kInvalidInput,
      fmt::format("{} \"{}\": {} fault{}: {}; {}", kind.name, path, faults.size(),
                  faults.size() == 1 ? "" : "s", faults.empty() ? "" : faults[0], advice));
  for (size_t i = 1; i < std::min(faults.size(), kShownFaults); ++i) {
    error.notes.push_back(faults[i]);
  }
  return error;
}

// Reads a non-negative number and raises it to `minimum`, which is 1 for costs, so that no node is
// free.
int64_t ReadAmount(const nlohmann::json& row, const char* key, int64_t minimum, bool is_required,
                   const std::string& where, std::vector<std::string>& faults) {
  const auto found = row.find(key);
  if (found == row.end()) {
    if (is_required) faults.push_back(fmt::format("{} has no \"{}\"", where, key));
    return 0;
  }
  const double amount = found->is_number() ? found->get<double>() : -1;
  constexpr double kMaxAmount = 1e15;  // 2^53 is exact in a double; anything near that is a fault.
  if (!(amount >= 0 && amount <= kMaxAmount)) {
    faults.push_back(fmt::format("{}: \"{}\" is {}, not a number in [0, 1e15]", where, key,
                                 found->dump().substr(0, 40)));
    return 0;
  }
  return std::max(minimum, static_cast<int64_t>(std::llround(amount)));
}

void ReadRow(const nlohmann::json& row, size_t index, const TableKind& kind, CostTable& table,
             std::vector<std::string>& faults) {
  if (!row.is_object() || !row.contains("name") || !row.at("name").is_string()) {
    faults.push_back(fmt::format("nodes[{}] has no \"name\"", index));
    return;
  }
  const std::string name = row.at("name").get<std::string>();
  const std::string where = fmt::format("node \"{}\"", name);
  MeasuredCost cost;
  if (kind.has_costs) {
    cost.forward = Cost(ReadAmount(row, "forward_cost", 1, true, where, faults));
    cost.backward = Cost(ReadAmount(row, "backward_cost", 1, true, where, faults));
  }
  const auto workspace = [&](const char* key) {
    return Bytes(ReadAmount(row, key, 0, !kind.has_costs, where, faults));
  };
  cost.forward_workspace = workspace("forward_workspace_bytes");
  cost.backward_workspace = workspace("backward_workspace_bytes");
  if (!table.emplace(name, cost).second) faults.push_back(where + " stands there twice");
}

Result<CostTable> ParseTable(std::string_view text, const std::string& path,
                             const TableKind& kind) {
  CostTable table;
  std::vector<std::string> faults;
  CKPLAN_ASSIGN_OR_RETURN(const size_t members, MeasureJson(text, path));
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("nodes") || !document.at("nodes").is_array()) {
    return Invalid(kind, path, {"it is not a JSON object with an array \"nodes\""}, kind.write_it);
  }
  const std::string unit = document.value("unit", nlohmann::json()).dump();
  if (kind.has_costs && unit != "\"ns\"")
    faults.push_back(fmt::format("\"unit\" is {}, not \"ns\"", unit));
  const std::string version = document.value("schema_version", nlohmann::json()).dump();
  if (!version.starts_with("\"1.")) {
    faults.push_back(fmt::format("\"schema_version\" is {}, not 1.x", version));
  }
  size_t index = 0;
  for (const nlohmann::json& row : document.at("nodes")) {
    ReadRow(row, index++, kind, table, faults);
  }
  if (CountMembers(document) != members) faults.emplace_back("an object has a key twice");
  if (!faults.empty()) return Invalid(kind, path, faults, kind.write_it);
  return table;
}

// Returns the rows of the nodes with these names, in their order.
Result<std::vector<MeasuredCost>> LookUp(const CostTable& table,
                                         const std::vector<std::string>& names,
                                         const std::string& path, const TableKind& kind) {
  std::vector<MeasuredCost> rows;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const auto found = table.find(name);
    if (found == table.end()) {
      missing.push_back(fmt::format("node \"{}\" is missing", name));
    } else {
      rows.push_back(found->second);
    }
  }
  if (!missing.empty()) return Invalid(kind, path, missing, kind.measure_model);
  return rows;
}

std::vector<std::string> NamesOf(const IdVector<NodeId, Node>& nodes) {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.name);
  return names;
}

}  // namespace

Result<CostTable> ParseCostTable(std::string_view text, const std::string& path) {
  return ParseTable(text, path, kCosts);
}

Result<CostTable> ParseWorkspaceTable(std::string_view text, const std::string& path) {
  return ParseTable(text, path, kWorkspaces);
}

Result<CostTable> ReadCostTable(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseCostTable(text, path);
}

Result<std::vector<MeasuredCost>> LookUpCosts(const CostTable& table,
                                              const std::vector<std::string>& names,
                                              const std::string& path) {
  return LookUp(table, names, path, kCosts);
}

Result<Done> SetMeasuredCosts(const std::string& path, IdVector<NodeId, Node>& nodes) {
  CKPLAN_ASSIGN_OR_RETURN(const CostTable table, ReadCostTable(path));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<MeasuredCost> costs,
                          LookUpCosts(table, NamesOf(nodes), path));
  for (const NodeId id : nodes.ids()) {
    const MeasuredCost& measured = costs[static_cast<size_t>(id.index())];
    nodes[id].forward_cost = measured.forward;
    nodes[id].backward_cost = measured.backward;
    nodes[id].forward_workspace = measured.forward_workspace;
    nodes[id].backward_workspace = measured.backward_workspace;
  }
  return Done{};
}

Result<Done> SetWorkspaces(const std::string& path, IdVector<NodeId, Node>& nodes) {
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  CKPLAN_ASSIGN_OR_RETURN(const CostTable table, ParseWorkspaceTable(text, path));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<MeasuredCost> rows,
                          LookUp(table, NamesOf(nodes), path, kWorkspaces));
  for (const NodeId id : nodes.ids()) {
    nodes[id].forward_workspace = rows[static_cast<size_t>(id.index())].forward_workspace;
    nodes[id].backward_workspace = rows[static_cast<size_t>(id.index())].backward_workspace;
  }
  return Done{};
}

}  // namespace ckplan
