// What an operator saves beside its outputs for its own backward, and how large it is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/ops/autograd.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct SavedStatistic {
  std::string_view suffix;  // What its name ends on: "bn1:moments".
  Bytes bytes;
};

// `is_stored` says of each output, by position, whether it exists as a tensor: one that nobody
// reads does not.
// Nothing if the operator's backward needs no statistic, or if one of its own outputs serves.
std::optional<SavedStatistic> StatisticOf(const OpSpec& spec, Autograd autograd,
                                          const std::vector<bool>& is_stored);

// Whether the operator's second output, where it is stored, is its statistic.
bool OutputServesAsStatistic(const OpSpec& spec);

}  // namespace ckplan
