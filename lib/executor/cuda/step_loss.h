// The loss of a training step on the GPU (lib/executor/backend/backend.h).
#pragma once

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/scalar/step_loss.h"

namespace ckplan::cuda {

inline constexpr int64_t kStepLossScratch =
    scalar::kLossParts * static_cast<int64_t>(sizeof(double));

// `scratch` has kStepLossScratch bytes of the device's memory.
double RunStepLoss(Device& device, const LossCall& call, void* scratch);

}  // namespace ckplan::cuda
