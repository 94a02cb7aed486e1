// Explains a shortage of memory that no plan can solve: the constants alone, such as parameters and
// optimizer state, need more than the device has. Lists their sizes and the settings that shrink
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// A setting that shrinks the constants.
struct LessConstants {
  Remedy::Setting setting;  // A field of PlanRequest, and its value.
  Bytes constants;          // All constants with this setting.
};

struct ConstantsShortage {
  ConstantMemory constants;
  Bytes optimizer_state;
  std::vector<LessConstants> remedies;  // Each changes one setting; it may not be enough.

  Bytes needed() const { return TotalConstants(constants, optimizer_state); }
};

// "parameters 25.10 GiB, gradients 25.10 GiB, adam state 50.20 GiB, inputs 32.00 KiB"
std::string PartsText(const ConstantMemory& constants, Bytes optimizer_state,
                      const PlanRequest& request);

// Returns a note for the error if the constants exceed a budget that covers them.
std::optional<std::string> ConstantsNote(const ConstantMemory& constants, Bytes optimizer_state,
                                         const PlanRequest& request);

// Returns nothing if the constants fit. One remedy is FSDP over the smallest power of two of
// devices with which they fit. `read` reloads the file of the source; its errors are returned.
Result<std::optional<ConstantsShortage>> FindConstantsShortage(const ReadSource& read,
                                                               const Source& source, Bytes memory);

}  // namespace ckplan
