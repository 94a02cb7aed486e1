// Types of the results of operators that ONNX doesn't know, from the user's description
// (lib/problem/ops/op_hint.h) or ckplan's own (com.microsoft's products with quantized weights, and
// others without a rule in ONNX).
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/op_hint.h"

namespace ckplan {

// Returns the operator's description, preferring the user's; null if none.
const OpHint* HintFor(const Model::Impl& model, const onnx::NodeProto& node);

// True if the user may describe the operator: ONNX's main domain doesn't define it.
bool IsDescribable(const ModelOperation& operation);

// Returns the user's description of the operator; null if none. It applies only to describable
// operators.
const OpHint* GivenHintFor(const Model::Impl& model, const onnx::NodeProto& node);

// The operator of ONNX, of set 13, whose results have the shapes of those of a quantized operator
// of ONNX Runtime.
struct FloatTwin {
  std::string_view type;  // Without the domain.
  const char* twin;
  std::array<int, 3> inputs;  // The positions of the twin's inputs; -1 if it has fewer.
  int next = 0;               // If positive, more inputs follow at this distance.
};

// Returns null if the operator has no twin.
const FloatTwin* TwinOf(const onnx::NodeProto& node);

// True if ckplan itself describes the operator.
bool HasBuiltInHint(const onnx::NodeProto& node);

// Returns one type per output; unset if unknown.
std::vector<onnx::TypeProto> HintedTypes(const Model::Impl& model, const ModelOperation& operation);

// The operator's name in LoadOptions::optional_dims.
std::string OptionalName(const OpHint& hint);

// Fails with kUsage if a description is not optional and the model lacks its operator, or if ONNX's
// main domain or the model defines the operator. Fails with kInvalidInput if backward would read an
// operand that no node of this type has. Call it after expanding the graph.
Result<Done> CheckHints(const Model::Impl& model, const std::set<std::string>& optional,
                        const std::string& file);

}  // namespace ckplan
