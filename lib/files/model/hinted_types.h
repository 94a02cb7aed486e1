// The types of results of operators that ONNX doesn't know: as the user describes them
// (lib/problem/ops/op_hint.h), or as ckplan does (com.microsoft's products with quantized weights,
// and others for which ONNX has no rule).
#pragma once

#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/op_hint.h"

namespace ckplan {

// Returns the description of the operator, the user's first; null if there is none.
const OpHint* HintFor(const Model::Impl& model, const onnx::NodeProto& node);

// Returns whether ckplan itself describes the operator.
bool HasOwnHint(const onnx::NodeProto& node);

// Returns one type for each output; unset where it stays unknown.
std::vector<onnx::TypeProto> HintedTypes(const Model::Impl& model, const ModelOperation& operation);

}  // namespace ckplan
