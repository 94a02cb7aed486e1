// What parameters and integers are used for. It decides what contents make sense for them where the
// file holds none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/model/model.h"

namespace ckplan {

struct Operation;

enum class ParameterUse { kWeight, kScale, kShift, kEmbedding, kOther };

struct UsedAs {
  ParameterUse use = ParameterUse::kOther;
  int64_t fan_in = 1;  // For a weight: how many products are summed into one output.
};

// How `operation` uses the parameter, of shape `dims`, that is its input at `position`.
UsedAs UseOf(const Operation& operation, size_t position, const std::vector<int64_t>& dims);

// By value of the model: all its elements index something, and are below this; 0 where no bound is
// known.
std::vector<int64_t> IndexBounds(const Model::Impl& model);

}  // namespace ckplan
