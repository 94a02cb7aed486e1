// Explains a shortage of memory that no plan can solve: the constants, such as parameters and
// optimizer state, alone need more than there is. It lists their sizes and settings that make them
// smaller.
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

// A setting with which the constants need less.
struct LessConstants {
  Remedy::Setting setting;  // A field of PlanRequest, and its value.
  Bytes constants;          // All constants with this setting.
};

struct ConstantsShortage {
  ConstantMemory constants;
  Bytes optimizer_state;
  std::vector<LessConstants> remedies;  // One setting changed in each; not every one suffices.

  Bytes needed() const { return TotalConstants(constants, optimizer_state); }
};

// "parameters 25.10 GiB, gradients 25.10 GiB, adam state 50.20 GiB, inputs 32.00 KiB"
std::string PartsText(const ConstantMemory& constants, Bytes optimizer_state,
                      const PlanRequest& request);

// Returns what a refusal adds if the constants exceed a budget that covers them, or nothing if they
// do not.
std::optional<std::string> ConstantsNote(const ConstantMemory& constants, Bytes optimizer_state,
                                         const PlanRequest& request);

// Returns nothing if the constants fit. One of the remedies is FSDP over the smallest power of two
// of devices with which the constants fit. `read` reads the file of the source; errors are its own.
Result<std::optional<ConstantsShortage>> FindConstantsShortage(const ReadSource& read,
                                                               const Source& source, Bytes memory);

}  // namespace ckplan
