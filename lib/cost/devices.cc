// The presets of devices.json, which CMake embeds into the program.
#include "lib/cost/devices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "devices_json.h"

namespace ckplan {

namespace {

DeviceRow DeviceOf(const nlohmann::json& row) {
  Device device;
  device.name = row.at("name").get<std::string>();
  device.description = row.at("description").get<std::string>();
  device.matrix_flops_per_second = row.at("matrix_flops_per_second").get<double>();
  device.vector_flops_per_second = row.at("vector_flops_per_second").get<double>();
  device.bytes_per_second = row.at("bytes_per_second").get<double>();
  device.launch_ns = row.at("launch_ns").get<double>();
  device.memory = Bytes(row.at("memory_bytes").get<int64_t>());
  return {std::move(device), row.at("half_matrix_flops_per_second").get<double>()};
}

}  // namespace

Result<std::vector<DeviceRow>> ListDeviceRows() {
  std::vector<DeviceRow> devices;
  try {
    const nlohmann::json document = nlohmann::json::parse(kDevicesJson);
    for (const nlohmann::json& row : document.at("devices")) devices.push_back(DeviceOf(row));
  } catch (const nlohmann::json::exception& fault) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("lib/cost/devices.json, built into this program, is damaged: {}; "
                                 "please report it",
                                 fault.what()));
  }
  return devices;
}

Result<std::vector<Device>> ListDevices() {
  CKPLAN_ASSIGN_OR_RETURN(std::vector<DeviceRow> rows, ListDeviceRows());
  std::vector<Device> devices;
  for (DeviceRow& row : rows) devices.push_back(std::move(row.device));
  return devices;
}

Result<Device> FindDevice(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices());
  std::string known;
  std::vector<const Device*> begun;  // Devices whose name begins with `name`: "a100" for
                                     // "a100-40g".
  for (const Device& device : devices) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
    if (!name.empty() && device.name.starts_with(std::string(name) + '-')) begun.push_back(&device);
  }
  if (begun.size() == 1) return *begun.front();
  if (begun.empty()) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("no device preset is named \"{}\"; the presets are {}", name, known));
  }
  std::string meant;
  for (const Device* device : begun) meant += (meant.empty() ? "" : " or ") + device->name;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("several device presets are named \"{}\"; say {}", name, meant));
}

}  // namespace ckplan
