// Memory that training needs on a device besides tensors, as far as it depends on neither the model
// nor the plan.
//
// The exact sizes are known only on the device. These come from PyTorch's source and users'
// reports; each has its source, the minimum and the maximum seen. --reserve replaces them with a
// measured value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/request.h"

namespace ckplan {

// How exact a figure is: exact to the byte, computed by the rules of PyTorch's source, or a rounded
// observation.
enum class LineKind { kExact, kFormula, kAllowance };
std::string_view NameOf(LineKind kind);  // "exact", "formula", "allowance"

// One part of the memory that training needs.
struct MemoryLine {
  std::string name;
  Bytes bytes;
  Bytes least;
  Bytes most;
  LineKind kind = LineKind::kExact;
  std::string source;

  bool operator==(const MemoryLine&) const = default;
};

// Returns the lines "cuBLAS", "context" and "driver" for a device preset. `memory` is its nominal
// memory, part of which the driver withholds.
std::vector<MemoryLine> OutsideOf(std::string_view device, Bytes memory);

// Returns the same lines for the request's device: the one that its memory or cost model names, or
// the default. If the memory is a size, the driver withholds nothing.
std::vector<MemoryLine> OutsideOf(const PlanRequest& request);

// Returns the memory outside tensors for every plan of a request: the reserve, or the sum of these
// lines.
Bytes OutsideInMemory(const PlanRequest& request);

}  // namespace ckplan
