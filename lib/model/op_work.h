// FLOPs and memory traffic of one operation, from its shapes: what lib/cost turns into time.
//
// A multiply-add counts as two. Backward of a matrix operation: the forward count once for each
// operand that needs a gradient (two for a layer with weights, one for the first layer); of all
// else: once for each input that needs one. Traffic: every tensor read or written, once; backward
// reads the gradients of the outputs and its backward reads, and writes the gradients it computes.
#pragma once

#include "lib/cost/op_work.h"
#include "lib/model/backward_reads.h"
#include "lib/model/facts.h"

namespace ckplan {

OpWork WorkOf(const Model::Impl& model, const ModelFacts& facts, const Operation& operation,
              const OperationFacts& own, const BackwardReads& backward, Bytes statistic);

}  // namespace ckplan
