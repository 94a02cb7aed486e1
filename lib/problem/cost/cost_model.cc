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
#include "lib/base/text.h"

namespace ckplan {

namespace {

// TensorGraph::Create refuses longer times anyway; the bound keeps the cast below defined.
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
      // The papers give no separate cost for the backward pass, so backward costs as much as
      // forward.
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

// A finite number above 0.
double RateOf(const Json& row, const char* key) {
  const double rate = row.at(key).get<double>();
  if (rate > 0 && std::isfinite(rate)) return rate;
  throw Json::other_error::create(500, fmt::format("{} is no rate", key), &row);
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
  std::vector<const Device*> begun;  // Devices whose name begins with `name`: "a100" for
                                     // "a100-40g".
  for (const Device& device : devices) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
    names.push_back(device.name);
    if (!name.empty() && device.name.starts_with(std::string(name) + '-')) begun.push_back(&device);
  }
  if (begun.size() == 1) return *begun.front();
  if (begun.empty()) {
    for (const Device& device : devices) {
      // "4090" for "rtx4090-24g".
      if (name.size() >= 2 && device.name.find(name) != std::string::npos) begun.push_back(&device);
    }
    const std::string meant = begun.empty() ? DidYouMean(name, names)
                                            : fmt::format("; did you mean \"{}\"?", begun[0]->name);
    Error error = MakeError(ErrorCode::kUsage,
                            fmt::format("no device preset is named \"{}\"{}", name, meant));
    error.notes.push_back("the presets are " + known);
    return error;
  }
  std::string meant;
  for (const Device* device : begun) meant += (meant.empty() ? "" : " or ") + device->name;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("several device presets are named \"{}\"; say {}", name, meant));
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
      throw Json::other_error::create(500, "two devices have one name", &row);
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

Result<std::vector<Device>> ListDevices() { return ReadDevices(kDevicesJson); }

Result<Device> FindDevice(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices());
  return FindAmong(devices, name);
}

Result<Device> FindCudaDevice(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(std::vector<Device> devices, ListDevices());
  std::erase_if(devices, [](const Device& device) { return !device.cuda; });
  return FindAmong(devices, name);
}

}  // namespace ckplan
