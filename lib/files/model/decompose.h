// Operators that ONNX Runtime's optimizers write (com.microsoft), as the operators of ONNX that
// they stand for:
//
//   y = SkipLayerNormalization(x, skip, g, b)    is    s = Add(x, skip)   y = LayerNormalization(s,
//   g, b)
//
// So shapes, costs, what backward reads, and what ckexec runs follow from ONNX's own operators. An
// operator of ONNX that is newer than the file's operator set, as LayerNormalization is in the
// files of that optimizer, is taken from the newest set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"

namespace ckplan {

struct Decomposition {
  // They read the operands of the node by OperandName, and each other's results.
  std::vector<onnx::NodeProto> nodes;
  std::vector<std::string> outputs;  // The names of the node's outputs among theirs.
};

// Returns nothing for an operator that is not known, or is used in a way that has no such form.
std::optional<Decomposition> Decompose(const Model::Impl& model, const onnx::NodeProto& node,
                                       const std::vector<ValueIndex>& inputs);

// Returns whether the operator is one that may be replaced, in a use of it that has such a form.
bool IsDecomposed(const onnx::NodeProto& node);

std::string OperandName(size_t position);

// The operator sets of the nodes.
const OpsetVersions& DecompositionOpsets();

}  // namespace ckplan
