// Why an operation cannot have its operands and attributes. Each function returns an empty text if
// it finds nothing.
//
//   OperandFault ──▶ AttributeFault ──▶ ONNX's inference (infer_types.h) ──▶ ShapeFault
//
// ONNX's inference trusts what it is given: it may loop forever over an attribute, and it doesn't
// compare all sizes. The rules of lib/problem/ops are asked before and after it.
#pragma once

#include <string>

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Describes operands that the operator does not allow: "3 inputs; it may have at most 2", "no input
// 0, which it requires", "floats as input 1, which takes none". Empty if there are none, or the
// operator is unknown. ONNX's shape rules ignore surplus operands and wrong types of operands, and
// give a Split as many sizes as it asks for, whatever outputs it has. The outputs need not be known
// yet.
std::string OperandFault(const Model::Impl& model, const ModelOperation& operation);

// What attributes and the known inputs show before the outputs are inferred: attributes that the
// operator's schema has in another type, or requires, floats of two types where it takes one, and
// what ValidateAttributes finds (lib/problem/ops/families.h).
std::string AttributeFault(const Model::Impl& model, const ModelOperation& operation);

// What ValidateContrib finds (lib/problem/ops/contrib.h) in an operator of com.microsoft's whose
// inputs all have a known shape. Empty for operators that the user describes.
std::string ContribFault(const Model::Impl& model, const ModelOperation& operation);

// Sizes that contradict each other, once inputs and outputs are known: see ValidateOp
// (lib/problem/ops/families.h). Empty for operators that lib/problem/ops does not know, and before
// opset 7, which broadcast in another way.
std::string ShapeFault(const Model::Impl& model, const ModelOperation& operation);

}  // namespace ckplan
