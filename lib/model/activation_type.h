// Stores the activations of a model in another type than the model's own.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Whether tensors of this ONNX type are affected by the activation type: float32, float16, bfloat16
// and float64.
bool FollowsActivationType(int32_t elem_type);

// Sets the sizes of the float values that depend on the batch to those of `type`. Their `elem_type`
// stays, so that the same operations are views. kInvalidInput: a value becomes too large to be
// counted.
Result<Done> SetActivationType(Model::Impl& model, ActivationType type);

}  // namespace ckplan
