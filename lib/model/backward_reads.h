// Which values an operation's backward reads: the letters of op_class.def, spelled out.
#pragma once

#include <vector>

#include "lib/model/facts.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct BackwardReads {
  std::vector<size_t> inputs;   // Positions; ascending, each once. Constants may be among them.
  std::vector<size_t> outputs;  // Likewise.
  bool statistic = false;
};

// For an operation that has a backward. What is needed only for a gradient that nobody asks for
// is not read.
BackwardReads FindBackwardReads(const Model::Impl& model, const ModelFacts& facts,
                                const Operation& operation, const OperationFacts& own,
                                Autograd autograd);

// Whether a gradient is computed for this input: of the batch, or a parameter.
bool WantsGradient(const Model::Impl& model, const ModelFacts& facts, const Operation& operation,
                   const OperationFacts& own, size_t input);

}  // namespace ckplan
