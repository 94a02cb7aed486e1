// Tells numbers that a program is written with from scalars that are trained, where a file has both
// as initializers of one element.
#pragma once

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Returns whether an initializer of one element is a plain number: an exporter or an optimizer has
// named it as it names constants, not as a model names its parameters. Contents do not count, since
// they change in training.
//
//   val_61, onnx::Mul_12, 345                        PyTorch's exporters
//   /attn/Constant_3_output_0, ortshared_1_0_1_0     Constant nodes that ONNX Runtime or onnxsim
//   moved const_fold_opt__36, model/mul/y:0, Mu_Mulcst     tf2onnx, TensorFlow, skl2onnx
bool IsPlainNumber(const ModelValue& value);

}  // namespace ckplan
