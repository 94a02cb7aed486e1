// Finds out why an operation can't have its operands and attributes. Each function returns an empty
// text if it finds no fault.
//
//   OperandFault ──▶ AttributeFault ──▶ ONNX's inference (infer_types.h) ──▶ ShapeFault
//
// ONNX's inference trusts its input: it may loop forever on an attribute, and it doesn't compare
// all sizes. The rules of lib/problem/ops run before and after it.
#pragma once

#include <string>

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Describes operands that the operator does not allow: "3 inputs; it may have at most 2", "no input
// 0, which is required", "floats as input 1, which does not accept floats". Empty if all are
// allowed or the operator is unknown. ONNX's shape rules ignore surplus operands and operands of
// wrong types, and give a Split as many sizes as it requests, whatever outputs it has. The outputs
// need not be known yet.
std::string OperandFault(const Model::Impl& model, const ModelOperation& operation);

// Checks attributes and known inputs before the outputs are inferred: required attributes and their
// types, floats of two types for an operator that requires one, and what ValidateAttributes
// (lib/problem/ops/families.h) checks.
std::string AttributeFault(const Model::Impl& model, const ModelOperation& operation);

// Checks a com.microsoft operator with ValidateContrib (lib/problem/ops/contrib.h) if all its
// inputs have known shapes. Empty for operators that the user describes.
std::string ContribFault(const Model::Impl& model, const ModelOperation& operation);

// Finds sizes that contradict each other, once inputs and outputs are known: see ValidateOp
// (lib/problem/ops/families.h). Empty for operators unknown to lib/problem/ops, and before opset 7,
// which broadcasts differently.
std::string ShapeFault(const Model::Impl& model, const ModelOperation& operation);

}  // namespace ckplan
