// Costs: how long an operation takes, as an integer in one unit for the whole graph.
//
//   flops      a roofline: max(flops / rate, bytes / bandwidth) + launch time of a named device,
//              in nanoseconds, rounded to the nearest, at least 1. Devices: devices.json.
//   paper      10 for a convolution, 1 for anything else (Kusumoto et al. 2019, section 5)
//   unit       1 for everything
//   file:PATH  measured, from a costs.json (see lib/cost/table.h)
//
// Rounding happens here, once; no algorithm ever sees a double.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/ops/work.h"

namespace ckplan {

// A row of devices.json. Rates are peak figures of the vendor's data sheet.
struct Device {
  std::string name;         // "a100-40g"
  std::string description;  // "NVIDIA A100 SXM 40 GB"
  double matrix_flops_per_second = 0;
  double vector_flops_per_second = 0;
  double bytes_per_second = 0;
  double launch_ns = 0;  // Fixed time of one operation.
  Bytes memory;
};

// All known devices, in the order of devices.json.
Result<std::vector<Device>> ListDevices();
// "rtx4090" will do for "rtx4090-24g" where no other begins so. kUsage, with the known names, else.
Result<Device> FindDevice(std::string_view name);
inline constexpr std::string_view kDefaultDevice = "a100-40g";

enum class CostKind { kFlops, kPaper, kUnit, kFile };

struct CostModel {
  CostKind kind = CostKind::kFlops;
  Device device;     // kFlops.
  std::string path;  // kFile.

  // As the plan names it: "flops:a100-40g", "paper", "unit", "file".
  std::string name() const;
  // "ns" for flops and file, "1" for the papers' plain numbers.
  std::string_view unit() const;
};

// Reads "flops", "flops:DEVICE", "paper", "unit", "file:PATH". Else kUsage.
Result<CostModel> ParseCostModel(std::string_view text);

struct OpCost {
  Cost forward;
  Cost backward;
};

// For all kinds but kFile, whose costs are looked up by node name.
OpCost CostOf(const CostModel& model, const OpWork& work);

}  // namespace ckplan
