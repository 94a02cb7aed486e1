// What parameters and integers are used for, which tells what sensible contents of them are where
// the file holds none.
#pragma once

#include <vector>

#include "lib/exec/step_graph.h"
#include "lib/model/facts.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Fills in `use` and `fan_in` of trained leaves, and `index_bound` of integer constants and inputs.
void FindUses(const Model::Impl& model, const ModelFacts& facts,
              const std::vector<ConstantId>& constant_of, StepGraph& step);

}  // namespace ckplan
