// The parameters and buffers of a model, each with the nodes that read it.
#pragma once

#include <vector>

#include "lib/graph/parameters.h"
#include "lib/model/facts.h"

namespace ckplan {

// All that ModelFacts::parameters counts. A node reads a parameter also where it reads what is
// computed from it before the step, such as its transpose. `node_of_operation` as in ModelGraph.
// Takes as long as nodes and the constants behind them are many.
std::vector<Parameter> ListParameters(const Model::Impl& model, const ModelFacts& facts,
                                      const std::vector<NodeId>& node_of_operation);

}  // namespace ckplan
