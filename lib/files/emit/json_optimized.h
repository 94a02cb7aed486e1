// The tensors that an optimizer keeps state for, in graph files:
// "optimized_tensors": [[elements, bytes of an element, how many], ...]
#pragma once

#include <optional>
#include <vector>

#include "lib/base/units.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_writer.h"
#include "lib/problem/graph/optimized_tensors.h"

namespace ckplan {

void WriteOptimizedTensors(const std::vector<OptimizedTensors>& tensors, JsonWriter* json);

// Reads them from the file's outermost object; nothing if the key is absent. It is a fault if they
// need more than `gradients`, the bytes of what may hold gradients.
std::optional<std::vector<OptimizedTensors>> ReadOptimizedTensors(const JsonView& root,
                                                                  Bytes gradients);

}  // namespace ckplan
