// Finds the parameters that several operations of a training step train, so that their gradients
// are sums over these operations: tied embeddings, or the heads of a detector that are applied at
// several scales.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/model/facts.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Returns for each operation the numbers of the parameters that it and others train, ascending; see
// Node::shared_parameters. Parameters that are combined before the step (a weight of which two
// parts are used) have one number together. O(operations).
std::vector<std::vector<int32_t>> FindSharedParameters(const Model::Impl& model,
                                                       const ModelFacts& facts);

}  // namespace ckplan
