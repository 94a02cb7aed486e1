// Computes how long each operation takes, as an integer in one unit for the whole graph.
//
//   flops      a roofline: max(flops / rate, bytes / bandwidth) + launch time of a device in
//              devices.json, in nanoseconds, rounded to the nearest, at least 1
//   paper      10 for a convolution, 1 for anything else (Kusumoto et al. 2019, section 5)
//   unit       1 for everything
//   file:PATH  measured costs from a costs.json (see CostTable below)
//
// Rounding happens only here, so algorithms use no floating-point costs.
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

// The properties of an NVIDIA GPU that cuDNN queries and that differ between GPUs.
struct CudaProperties {
  int64_t compute_capability = 0;  // 90 for 9.0.
  int64_t multiprocessors = 0;
  Bytes shared_memory_per_block;  // The maximum for a kernel.
  Bytes l2_cache;
  int64_t clock_khz = 0;  // Maximum, like memory_clock_khz.
  int64_t memory_clock_khz = 0;
};

// One entry of devices.json. Rates are the peak figures of the vendor's data sheet.
struct Device {
  std::string name;                         // For example "a100-40g".
  std::string description;                  // For example "NVIDIA A100 SXM 40 GB".
  double matrix_flops_per_second = 0;       // Convolutions and products of 32-bit tensors.
  double half_matrix_flops_per_second = 0;  // Convolutions and products of 16-bit tensors.
  // Convolutions and products of FP8 tensors, if supported. Costs do not depend on it.
  std::optional<double> fp8_matrix_flops_per_second;
  double vector_flops_per_second = 0;
  double bytes_per_second = 0;
  double launch_ns = 0;  // The fixed time of each operation.
  Bytes memory;
  std::optional<HostLink> host_link;   // Costs do not depend on it.
  std::optional<CudaProperties> cuda;  // Costs do not depend on it.
};

// Returns all known devices in the order of devices.json.
Result<std::vector<Device>> ListDevices();
// Finds a device by its name or by a unique prefix: "rtx4090" finds "rtx4090-24g". kUsage, listing
// the known names: no device matches, or several do.
Result<Device> FindDevice(std::string_view name);
// Likewise, among the devices with CudaProperties.
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

// Parses "flops", "flops:DEVICE", "paper", "unit" or "file:PATH". kUsage: anything else.
Result<CostModel> ParseCostModel(std::string_view text);

struct OpCost {
  Cost forward;
  Cost backward;
};

// For all kinds except kFile, whose costs are looked up by node name.
OpCost CostOf(const CostModel& model, const OpWork& work);

// Parses devices.json; ListDevices parses the copy that is compiled into the program. kInternal:
// the text is damaged. Each device needs a unique name, a description, all rates except FP8's, and
// a memory size, with rates and sizes above 0. A host link needs a name and a rate.
Result<std::vector<Device>> ReadDevices(std::string_view json);

// Measured costs: the file that `ckexec profile` writes and `--cost file:costs.json` reads.
//
//   {"schema_version": "1.0", "unit": "ns", "nodes": [
//     {"name": "conv1", "forward_cost": 41234, "backward_cost": 90210,
//      "forward_workspace_bytes": 0, "backward_workspace_bytes": 1048576}, ...]}
//
// Nodes are matched by name; schemas/costs.schema.json describes the file. Workspaces can also come
// from the file of `ckexec profile --device`, which has no costs: schemas/workspaces.schema.json.
// Fractional costs are rounded to the nearest integer, at least 1.
struct MeasuredCost {
  Cost forward;
  Cost backward;
  Bytes forward_workspace;
  Bytes backward_workspace;

  bool operator==(const MeasuredCost&) const = default;
};

using CostTable = std::map<std::string, MeasuredCost, std::less<>>;

// kIo: the file cannot be read. kInvalidInput, listing all faults: the text is not a cost file.
Result<CostTable> ReadCostTable(const std::string& path);
Result<CostTable> ParseCostTable(std::string_view text, const std::string& path);

// Returns the costs of the named nodes, in order. kInvalidInput, listing them: names are missing
// from the table.
Result<std::vector<MeasuredCost>> LookUpCosts(const CostTable& table,
                                              const std::vector<std::string>& names,
                                              const std::string& path);

// Sets each node's costs and workspaces from the cost file at `path`. Returns the errors of
// ReadCostTable and LookUpCosts.
Result<Done> SetMeasuredCosts(const std::string& path, IdVector<NodeId, Node>& nodes);

// Sets each node's workspaces from the workspace or cost file at `path`.
Result<Done> SetWorkspaces(const std::string& path, IdVector<NodeId, Node>& nodes);
// Like ParseCostTable, but reads only workspaces; the costs are 0.
Result<CostTable> ParseWorkspaceTable(std::string_view text, const std::string& path);

}  // namespace ckplan
