// The rows of devices.json: what our own costs need of a device, and what others ask us for.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/cost/cost_model.h"

namespace ckplan {

struct DeviceRow {
  Device device;
  // Convolutions and products of 16-bit tensors. No cost of ours uses it; those of ckplan.torch do.
  double half_matrix_flops_per_second = 0;
};

// All known devices, in the order of devices.json.
Result<std::vector<DeviceRow>> ListDeviceRows();

}  // namespace ckplan
