// Where nothing fits because what no plan changes alone needs more memory than there is: how much
// that is, and what would make it less.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/request.h"
#include "lib/planner/source.h"

namespace ckplan {

// A setting with which the constants need less.
struct LessConstants {
  Remedy::Setting setting;  // A field of PlanRequest, and its value.
  Bytes constants;          // With it.
};

struct ConstantsShortage {
  ConstantMemory constants;
  Bytes optimizer_state;
  std::vector<LessConstants> remedies;  // Each of them alone; not all suffice.

  Bytes needed() const { return TotalConstants(constants, optimizer_state); }
};

// "parameters 25.10 GiB, gradients 25.10 GiB, adam state 50.20 GiB, inputs 32.00 KiB"
std::string PartsText(const ConstantMemory& constants, Bytes optimizer_state, Optimizer optimizer);

// What a refusal adds where the constants exceed a budget that covers them; else nothing.
std::optional<std::string> ConstantsNote(const ConstantMemory& constants, Bytes optimizer_state,
                                         const PlanRequest& request);

// Looks at the model that was read from `path` by the request in the source. Nothing: the constants
// fit. Among the remedies is the least power of two of devices among which FSDP divides the
// parameters so that they do. Errors are those of reading the model.
Result<std::optional<ConstantsShortage>> FindConstantsShortage(const std::string& path,
                                                               const Source& source, Bytes memory);

}  // namespace ckplan
