// The types of results of operators that ONNX doesn't know: as the user describes them
// (lib/problem/ops/op_hint.h), or as ckplan does (com.microsoft's products with quantized weights,
// and others for which ONNX has no rule).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/op_hint.h"

namespace ckplan {

// Returns the description of the operator, the user's first; null if there is none.
const OpHint* HintFor(const Model::Impl& model, const onnx::NodeProto& node);

// Returns the user's description of the operator; null if there is none. It counts only for
// operators that have no ONNX schema.
const OpHint* GivenHintFor(const Model::Impl& model, const onnx::NodeProto& node);

// Returns whether ckplan itself describes the operator.
bool HasOwnHint(const onnx::NodeProto& node);

// Returns one type for each output; unset where it stays unknown.
std::vector<onnx::TypeProto> HintedTypes(const Model::Impl& model, const ModelOperation& operation);

// The name under which settings that a model may lack list an operator
// (LoadOptions::optional_dims).
std::string OptionalName(const OpHint& hint);

// kUsage: a description is of an operator that the model doesn't have, and is not optional, or of
// one that ckplan knows anyway. kInvalidInput: backward is said to read an operand that no node of
// this type has. Must be called once the graph is expanded.
Result<Done> CheckHints(const Model::Impl& model, const std::set<std::string>& optional,
                        const std::string& file);

}  // namespace ckplan
