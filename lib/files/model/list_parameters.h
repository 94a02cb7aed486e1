// The parameters and buffers of a model, each with the nodes that read it.
#pragma once

#include <vector>

#include "lib/files/model/facts.h"
#include "lib/problem/graph/parameters.h"

namespace ckplan {

// Lists everything that ModelFacts::parameters counts. A node also counts as a reader of a
// parameter if it reads a value computed from it before the step, such as its transpose.
// `node_of_operation` is as in ModelGraph. The time is linear in nodes and in the constants that
// they depend on.
std::vector<Parameter> ListParameters(const Model::Impl& model, const ModelFacts& facts,
                                      const std::vector<NodeId>& node_of_operation);

}  // namespace ckplan
