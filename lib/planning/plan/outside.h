// What training needs of a device besides its tensors, as far as neither the model nor the plan
// changes it.
//
// None of this is known without the device. The figures are what PyTorch's source says and what
// users report, each with its source and the least and the most that were seen. --reserve replaces
// them where they were measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/request.h"

namespace ckplan {

// How far a figure can be trusted: it is right to the byte; it follows from rules of PyTorch's
// source; or it is a round figure of what was seen.
enum class LineKind { kExact, kFormula, kAllowance };
std::string_view NameOf(LineKind kind);  // "exact", "formula", "allowance"

// One part of what training needs.
struct MemoryLine {
  std::string name;
  Bytes bytes;
  Bytes least;
  Bytes most;
  LineKind kind = LineKind::kExact;
  std::string source;

  bool operator==(const MemoryLine&) const = default;
};

// Returns the lines "cuBLAS", "context" and "driver" of a device preset. `memory` is its nominal
// memory; the driver keeps a part of it.
std::vector<MemoryLine> OutsideOf(std::string_view device, Bytes memory);

// Returns the same lines for the device of a request: the one that its memory or its cost model
// names, or else the default. If the memory is a size, the driver keeps nothing of it.
std::vector<MemoryLine> OutsideOf(const PlanRequest& request);

// Returns what a request's memory has to hold besides tensors, whatever the plan: the reserve, or
// the sum of these lines.
Bytes OutsideInMemory(const PlanRequest& request);

}  // namespace ckplan
