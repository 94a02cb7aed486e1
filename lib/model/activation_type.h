// Stores a model's activations in another type than the model's own.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Returns whether the activation type changes the size of tensors with this ONNX type: float32,
// float16, bfloat16 and float64.
bool FollowsActivationType(int32_t elem_type);

// Sets the sizes of float values that depend on the batch to those of `type`. Their `elem_type`
// stays, so that the same operations are views. kInvalidInput: the size of a value overflows.
Result<Done> SetActivationType(Model::Impl& model, ActivationType type);

}  // namespace ckplan
