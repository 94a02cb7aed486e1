// How large the activations of a model are, if not as large as its own types say.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Whether tensors of this type of ONNX can be stored as another one: float32, float16, bfloat16 and
// float64.
bool FollowsActivationType(int32_t elem_type);

// Gives the float values that depend on the batch the sizes of `type`; their `elem_type` stays, so
// that the same operations are views. kInvalidInput: one is then beyond any machine.
Result<Done> SetActivationType(Model::Impl& model, ActivationType type);

}  // namespace ckplan
