// Finds out what parameters and integers are used for. This determines sensible contents for those
// whose contents the file lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/files/model/model.h"

namespace ckplan {

struct ModelOperation;

enum class ParameterUse { kWeight, kScale, kShift, kEmbedding, kOther };

struct UsedAs {
  ParameterUse use = ParameterUse::kOther;
  int64_t fan_in = 1;  // For a weight: the number of products that are summed into one output.
};

// Returns how `operation` uses the parameter of shape `dims` that is its input at `position`.
UsedAs UseOf(const ModelOperation& operation, size_t position, const std::vector<int64_t>& dims);

// Returns, for each value of the model, a bound such that all its elements are indices below it; 0
// if no bound is known.
std::vector<int64_t> IndexBounds(const Model::Impl& model);

}  // namespace ckplan
