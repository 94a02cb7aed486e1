#include "lib/cost/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/base/json_extent.h"
#include "lib/base/read_file.h"

namespace ckplan {

namespace {

constexpr size_t kShownFaults =
    8;  // Further faults are only counted, so that a message stays readable.

Error Invalid(const std::string& path, const std::vector<std::string>& faults,
              std::string_view advice) {
  Error error =
      MakeError(ErrorCode::kInvalidInput, fmt::format("cost file \"{}\": {} fault{}: {}; {}", path,
                                                      faults.size(), faults.size() == 1 ? "" : "s",
                                                      faults.empty() ? "" : faults[0], advice));
  for (size_t i = 1; i < std::min(faults.size(), kShownFaults); ++i) {
    error.notes.push_back(faults[i]);
  }
  return error;
}

// Reads a non-negative number and raises it to `minimum`, which is 1 for costs, so that no node is
// free.
int64_t ReadAmount(const nlohmann::json& row, const char* key, int64_t minimum,
                   const std::string& where, std::vector<std::string>& faults) {
  const auto found = row.find(key);
  if (found == row.end()) {
    if (minimum > 0) faults.push_back(fmt::format("{} has no \"{}\"", where, key));
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

void ReadRow(const nlohmann::json& row, size_t index, CostTable& table,
             std::vector<std::string>& faults) {
  if (!row.is_object() || !row.contains("name") || !row.at("name").is_string()) {
    faults.push_back(fmt::format("nodes[{}] has no \"name\"", index));
    return;
  }
  const std::string name = row.at("name").get<std::string>();
  const std::string where = fmt::format("node \"{}\"", name);
  MeasuredCost cost;
  cost.forward = Cost(ReadAmount(row, "forward_cost", 1, where, faults));
  cost.backward = Cost(ReadAmount(row, "backward_cost", 1, where, faults));
  cost.forward_workspace = Bytes(ReadAmount(row, "forward_workspace_bytes", 0, where, faults));
  cost.backward_workspace = Bytes(ReadAmount(row, "backward_workspace_bytes", 0, where, faults));
  if (!table.emplace(name, cost).second) faults.push_back(where + " stands there twice");
}

}  // namespace

Result<CostTable> ParseCostTable(std::string_view text, const std::string& path) {
  constexpr std::string_view kAdvice = "write it with `ckexec profile MODEL -o costs.json`";
  CostTable table;
  std::vector<std::string> faults;
  CKPLAN_ASSIGN_OR_RETURN(const size_t members, MeasureJson(text, path));
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("nodes") || !document.at("nodes").is_array()) {
    return Invalid(path, {"it is no JSON object with an array \"nodes\""}, kAdvice);
  }
  const std::string unit = document.value("unit", nlohmann::json()).dump();
  if (unit != "\"ns\"") faults.push_back(fmt::format("\"unit\" is {}, not \"ns\"", unit));
  const std::string version = document.value("schema_version", nlohmann::json()).dump();
  if (!version.starts_with("\"1.")) {
    faults.push_back(fmt::format("\"schema_version\" is {}, not 1.x", version));
  }
  size_t index = 0;
  for (const nlohmann::json& row : document.at("nodes")) ReadRow(row, index++, table, faults);
  if (CountMembers(document) != members) faults.emplace_back("an object has a key twice");
  if (!faults.empty()) return Invalid(path, faults, kAdvice);
  return table;
}

Result<CostTable> ReadCostTable(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseCostTable(text, path);
}

Result<std::vector<MeasuredCost>> LookUpCosts(const CostTable& table,
                                              const std::vector<std::string>& names,
                                              const std::string& path) {
  std::vector<MeasuredCost> costs;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const auto found = table.find(name);
    if (found == table.end()) {
      missing.push_back(fmt::format("node \"{}\" is missing", name));
    } else {
      costs.push_back(found->second);
    }
  }
  if (!missing.empty()) {
    return Invalid(path, missing, "measure this very model: `ckexec profile MODEL -o costs.json`");
  }
  return costs;
}

Result<Done> SetMeasuredCosts(const std::string& path, IdVector<NodeId, Node>& nodes) {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.name);
  CKPLAN_ASSIGN_OR_RETURN(const CostTable table, ReadCostTable(path));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<MeasuredCost> costs, LookUpCosts(table, names, path));
  for (const NodeId id : nodes.ids()) {
    const MeasuredCost& measured = costs[static_cast<size_t>(id.index())];
    nodes[id].forward_cost = measured.forward;
    nodes[id].backward_cost = measured.backward;
    nodes[id].forward_workspace = measured.forward_workspace;
    nodes[id].backward_workspace = measured.backward_workspace;
  }
  return Done{};
}

}  // namespace ckplan
