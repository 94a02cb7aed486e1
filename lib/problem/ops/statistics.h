// Finds what an operator saves besides its outputs for its own backward, and how large it is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct SavedStatistic {
  std::string_view suffix;  // Appended to the node's name: "bn1:moments".
  Bytes bytes;
};

// Returns nothing if the operator's backward needs no statistic, or if one of the operator's own
// outputs serves as one. `is_stored` says for each output, by position, whether it exists as a
// tensor; an output that is never read does not.
std::optional<SavedStatistic> StatisticOf(const OpSpec& spec, Autograd autograd,
                                          const std::vector<bool>& is_stored);

// Returns whether the mask of a Dropout has one byte for each element: PyTorch's fused kernel on a
// GPU writes such a mask, but not in place.
bool HasByteMask(const OpSpec& spec, Autograd autograd);

// Returns whether the operator's second output, where it is stored, is its statistic.
bool OutputServesAsStatistic(const OpSpec& spec);

}  // namespace ckplan
