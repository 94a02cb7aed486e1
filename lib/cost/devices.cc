// The presets of devices.json, which CMake embeds into the program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "devices_json.h"
#include "lib/base/nearest_name.h"
#include "lib/cost/cost_model.h"

namespace ckplan {

namespace {

Device DeviceOf(const nlohmann::json& row) {
  Device device;
  device.name = row.at("name").get<std::string>();
  device.description = row.at("description").get<std::string>();
  device.matrix_flops_per_second = row.at("matrix_flops_per_second").get<double>();
  device.half_matrix_flops_per_second = row.at("half_matrix_flops_per_second").get<double>();
  device.vector_flops_per_second = row.at("vector_flops_per_second").get<double>();
  device.bytes_per_second = row.at("bytes_per_second").get<double>();
  device.launch_ns = row.at("launch_ns").get<double>();
  device.memory = Bytes(row.at("memory_bytes").get<int64_t>());
  return device;
}

}  // namespace

Result<std::vector<Device>> ListDevices() {
  std::vector<Device> devices;
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

Result<Device> FindDevice(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices());
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

}  // namespace ckplan
