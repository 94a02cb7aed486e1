// Costs: how long an operation takes, as an integer in one unit for the whole graph.
//
//   flops      a roofline: max(flops / rate, bytes / bandwidth) + launch time of a named device,
//              in nanoseconds, rounded to the nearest, at least 1. Devices: devices.json.
//   paper      10 for a convolution, 1 for anything else (Kusumoto et al. 2019, section 5)
//   unit       1 for everything
//   file:PATH  measured, from a costs.json (see CostTable below)
//
// Rounding happens here, once; no algorithm ever sees a double.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/ops/work.h"

namespace ckplan {

// The connection of a device to the memory of its host.
struct HostLink {
  std::string name;             // For example "PCIe 5 x16".
  double bytes_per_second = 0;  // In each direction.
};

// What cuDNN asks about an NVIDIA GPU, as far as GPUs differ in it.
struct CudaProperties {
  int64_t compute_capability = 0;  // 90 for 9.0.
  int64_t multiprocessors = 0;
  Bytes shared_memory_per_block;  // The most that a kernel can ask for.
  Bytes l2_cache;
  int64_t clock_khz = 0;  // This and memory_clock_khz are the highest ones.
  int64_t memory_clock_khz = 0;
};

// One entry of devices.json. Rates are the peak figures of the vendor's data sheet.
struct Device {
  std::string name;                         // For example "a100-40g".
  std::string description;                  // For example "NVIDIA A100 SXM 40 GB".
  double matrix_flops_per_second = 0;       // Convolutions and products of 32-bit tensors.
  double half_matrix_flops_per_second = 0;  // Convolutions and products of 16-bit tensors.
  // Convolutions and products of FP8 tensors, if the device has them. No cost depends on it.
  std::optional<double> fp8_matrix_flops_per_second;
  double vector_flops_per_second = 0;
  double bytes_per_second = 0;
  double launch_ns = 0;  // The fixed time of each operation.
  Bytes memory;
  std::optional<HostLink> host_link;   // No cost depends on it.
  std::optional<CudaProperties> cuda;  // No cost depends on it.
};

// Returns all known devices in the order of devices.json.
Result<std::vector<Device>> ListDevices();
// Finds a device by its name or by a unique beginning of it: "rtx4090" finds "rtx4090-24g". kUsage,
// listing the known names: there is no such device, or several.
Result<Device> FindDevice(std::string_view name);
// Finds one of the devices whose CudaProperties are known: "h100" finds "h100-80g", whatever other
// devices are named so. kUsage, listing their names: there is none.
Result<Device> FindCudaDevice(std::string_view name);
inline constexpr std::string_view kDefaultDevice = "a100-40g";

enum class CostKind { kFlops, kPaper, kUnit, kFile };

struct CostModel {
  CostKind kind = CostKind::kFlops;
  Device device;     // Set if `kind` is kFlops.
  std::string path;  // Set if `kind` is kFile.

  // Returns the name that plans use: "flops:a100-40g", "paper", "unit", "file".
  std::string name() const;
  // Returns "ns" for kFlops and kFile, and "1" for the papers' plain numbers.
  std::string_view unit() const;
};

// Reads "flops", "flops:DEVICE", "paper", "unit" or "file:PATH". kUsage: anything else.
Result<CostModel> ParseCostModel(std::string_view text);

struct OpCost {
  Cost forward;
  Cost backward;
};

// Computes costs for all kinds except kFile, whose costs are looked up by node name.
OpCost CostOf(const CostModel& model, const OpWork& work);

// Reads the text of devices.json. ListDevices (cost_model.h) reads the text that is compiled into
// the program.

// kInternal: the text is damaged. Every device needs a name of its own, a description, all rates
// but that of FP8, and a memory size. Rates and sizes are above 0. A link to the host needs a name
// and a rate.
Result<std::vector<Device>> ReadDevices(std::string_view json);

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
