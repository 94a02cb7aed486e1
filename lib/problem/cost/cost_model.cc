#include "lib/problem/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "devices_json.h"
#include "lib/base/file.h"
#include "lib/base/json_extent.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

// Keeps the cast below defined. TensorGraph::Create refuses longer times anyway.
constexpr double kMaxCostNs = 1e18;

Cost Rounded(double nanoseconds) {
  return Cost(std::max<int64_t>(1, std::llround(std::min(nanoseconds, kMaxCostNs))));
}

double RooflineNs(const Device& device, const OpWork& work, int64_t flops, Bytes traffic) {
  const double rate = !work.uses_matrix_units  ? device.vector_flops_per_second
                      : work.has_half_operands ? device.half_matrix_flops_per_second
                                               : device.matrix_flops_per_second;
  const double compute_ns = static_cast<double>(flops) / rate * 1e9;
  const double memory_ns = static_cast<double>(traffic.count()) / device.bytes_per_second * 1e9;
  return std::max(compute_ns, memory_ns) + device.launch_ns;
}

}  // namespace

std::string CostModel::name() const {
  switch (kind) {
    case CostKind::kFlops:
      return "flops:" + device.name;
    case CostKind::kPaper:
      return "paper";
    case CostKind::kUnit:
      return "unit";
    case CostKind::kFile:
      return "file";
  }
  CKPLAN_CHECK(false, "every kind of cost is handled above");
}

std::string_view CostModel::unit() const {
  return kind == CostKind::kFlops || kind == CostKind::kFile ? "ns" : "1";
}

Result<CostModel> ParseCostModel(std::string_view text) {
  CostModel model;
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? text.substr(colon + 1) : std::string_view{};
  if (kind == "flops") {
    model.kind = CostKind::kFlops;
    CKPLAN_ASSIGN_OR_RETURN(model.device, FindDevice(has_argument ? argument : kDefaultDevice));
    return model;
  }
  if (kind == "file" && !argument.empty()) {
    model.kind = CostKind::kFile;
    model.path = std::string(argument);
    return model;
  }
  if (kind == "paper" && !has_argument) {
    model.kind = CostKind::kPaper;
    return model;
  }
  if (kind == "unit" && !has_argument) {
    model.kind = CostKind::kUnit;
    return model;
  }
  return MakeError(
      ErrorCode::kUsage,
      fmt::format(
          "unknown cost model \"{}\"; use flops, flops:DEVICE, paper, unit or file:COSTS.json",
          text));
}

OpCost CostOf(const CostModel& model, const OpWork& work) {
  switch (model.kind) {
    case CostKind::kFlops:
      return {Rounded(RooflineNs(model.device, work, work.forward_flops, work.forward_traffic)),
              Rounded(RooflineNs(model.device, work, work.backward_flops, work.backward_traffic))};
    case CostKind::kPaper: {
      // The papers have no separate backward cost, so backward costs as much as forward.
      const Cost cost(work.is_convolution ? 10 : 1);
      return {cost, cost};
    }
    case CostKind::kUnit:
      return {Cost(1), Cost(1)};
    case CostKind::kFile:
      break;
  }
  CKPLAN_CHECK(false, "measured costs are looked up by node name, not computed");
}

// The presets of devices.json, which CMake embeds into the program.

namespace {

using Json = nlohmann::json;

// Returns a finite number above 0.
double RateOf(const Json& row, const char* key) {
  const double rate = row.at(key).get<double>();
  if (rate > 0 && std::isfinite(rate)) return rate;
  throw Json::other_error::create(500, fmt::format("{} is not a positive number", key), &row);
}

std::string TextOf(const Json& row, const char* key) {
  std::string text = row.at(key).get<std::string>();
  if (!text.empty()) return text;
  throw Json::other_error::create(500, fmt::format("{} is empty", key), &row);
}

std::optional<HostLink> HostLinkOf(const Json& row) {
  const auto link = row.find("host_link");
  if (link == row.end()) return std::nullopt;
  return HostLink{TextOf(*link, "name"), RateOf(*link, "bytes_per_second")};
}

std::optional<CudaProperties> CudaPropertiesOf(const Json& row) {
  const auto found = row.find("cuda");
  if (found == row.end()) return std::nullopt;
  const auto integer = [&](const char* key) { return static_cast<int64_t>(RateOf(*found, key)); };
  return CudaProperties{integer("compute_capability"),
                        integer("multiprocessors"),
                        Bytes(integer("shared_memory_per_block_bytes")),
                        Bytes(integer("l2_cache_bytes")),
                        integer("clock_khz"),
                        integer("memory_clock_khz")};
}

Device DeviceOf(const Json& row) {
  Device device;
  device.name = TextOf(row, "name");
  device.description = TextOf(row, "description");
  device.matrix_flops_per_second = RateOf(row, "matrix_flops_per_second");
  device.half_matrix_flops_per_second = RateOf(row, "half_matrix_flops_per_second");
  if (row.contains("fp8_matrix_flops_per_second")) {
    device.fp8_matrix_flops_per_second = RateOf(row, "fp8_matrix_flops_per_second");
  }
  device.vector_flops_per_second = RateOf(row, "vector_flops_per_second");
  device.bytes_per_second = RateOf(row, "bytes_per_second");
  device.launch_ns = RateOf(row, "launch_ns");
  device.memory = Bytes(static_cast<int64_t>(RateOf(row, "memory_bytes")));
  device.host_link = HostLinkOf(row);
  device.cuda = CudaPropertiesOf(row);
  return device;
}

Result<Device> FindAmong(const std::vector<Device>& devices, std::string_view name) {
  std::string known;
  std::vector<std::string_view> names;
  std::vector<const Device*> matches;  // Devices whose name begins with `name`: "a100" for
                                       // "a100-40g".
  for (const Device& device : devices) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
    names.push_back(device.name);
    if (!name.empty() && device.name.starts_with(std::string(name) + '-'))
      matches.push_back(&device);
  }
  if (matches.size() == 1) return *matches.front();
  if (matches.empty()) {
    for (const Device& device : devices) {
      // "4090" for "rtx4090-24g".
      if (name.size() >= 2 && device.name.find(name) != std::string::npos)
        matches.push_back(&device);
    }
    const std::string hint = matches.empty()
                                 ? DidYouMean(name, names)
                                 : fmt::format("; did you mean \"{}\"?", matches[0]->name);
    Error error =
        MakeError(ErrorCode::kUsage, fmt::format("no device preset is named \"{}\"{}", name, hint));
    error.notes.push_back("the presets are " + known);
    return error;
  }
  std::string names_text;
  for (const Device* device : matches)
    names_text += (names_text.empty() ? "" : " or ") + device->name;
  return MakeError(ErrorCode::kUsage, fmt::format("several device presets are named \"{}\"; use {}",
                                                  name, names_text));
}

}  // namespace

Result<std::vector<Device>> ReadDevices(std::string_view json) {
  std::vector<Device> devices;
  std::set<std::string> names;
  try {
    const Json document = Json::parse(json);
    for (const Json& row : document.at("devices")) {
      devices.push_back(DeviceOf(row));
      if (names.insert(devices.back().name).second) continue;
      throw Json::other_error::create(500, "two devices have the same name", &row);
    }
  } catch (const Json::exception& fault) {
    return MakeError(
        ErrorCode::kInternal,
        fmt::format("lib/problem/cost/devices.json, built into this program, is damaged: {}; "
                    "please report it",
                    fault.what()));
  }
  return devices;
}

// The text never changes, and planning asks for the same device at every turn.
Result<std::vector<Device>> ListDevices() {
  static const Result<std::vector<Device>> devices = ReadDevices(kDevicesJson);
  return devices;
}

Result<Device> FindDevice(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices());
  return FindAmong(devices, name);
}

Result<Device> FindCudaDevice(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(std::vector<Device> devices, ListDevices());
  std::erase_if(devices, [](const Device& device) { return !device.cuda; });
  return FindAmong(devices, name);
}

namespace {

constexpr size_t kShownFaults =
    8;  // Further faults are only counted, so that a message stays readable.

// The two kinds of files, with their texts for messages.
struct TableKind {
  std::string_view name;
  std::string_view write_it, measure_model;  // Advice.
  bool has_costs = true;
};
constexpr TableKind kCosts{"cost file", "write it with `ckexec profile MODEL -o costs.json`",
                           "measure this model: `ckexec profile MODEL -o costs.json`"};
constexpr TableKind kWorkspaces{
    "workspace file", "write it with `ckexec profile --device NAME MODEL -o workspaces.json`",
    "profile this model: `ckexec profile --device NAME MODEL -o workspaces.json`", false};

Error TableError(const TableKind& kind, const std::string& path,
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

// Reads a non-negative number and raises it to `minimum`, which is 1 for costs, so that each node
// costs something.
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
  if (!table.emplace(name, cost).second) faults.push_back(where + " is listed twice");
}

Result<CostTable> ParseTable(std::string_view text, const std::string& path,
                             const TableKind& kind) {
  CostTable table;
  std::vector<std::string> faults;
  CKPLAN_ASSIGN_OR_RETURN(const size_t members, MeasureJson(text, path));
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("nodes") || !document.at("nodes").is_array()) {
    return TableError(kind, path, {"it is not a JSON object with an array \"nodes\""},
                      kind.write_it);
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
  if (!faults.empty()) return TableError(kind, path, faults, kind.write_it);
  return table;
}

// Returns the rows of the named nodes, in order.
Result<std::vector<MeasuredCost>> FindRows(const CostTable& table,
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
  if (!missing.empty()) return TableError(kind, path, missing, kind.measure_model);
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
  return FindRows(table, names, path, kCosts);
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
                          FindRows(table, NamesOf(nodes), path, kWorkspaces));
  for (const NodeId id : nodes.ids()) {
    nodes[id].forward_workspace = rows[static_cast<size_t>(id.index())].forward_workspace;
    nodes[id].backward_workspace = rows[static_cast<size_t>(id.index())].backward_workspace;
  }
  return Done{};
}

}  // namespace ckplan
