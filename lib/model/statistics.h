// What a node saves beside its outputs for its own backward, and how large it is.
#pragma once

#include <optional>
#include <string_view>

#include "lib/model/facts.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct SavedStatistic {
  std::string_view suffix;  // Of its name: "bn1:moments".
  Bytes bytes;
};

// Which outputs of the operation exist as tensors: `is_used` by position.
// Nothing if its backward needs no statistic, or if one of its own outputs serves.
std::optional<SavedStatistic> StatisticOf(const Model::Impl& model, const Operation& operation,
                                          const OpRule& rule, Autograd autograd,
                                          const std::vector<bool>& is_used);

}  // namespace ckplan
