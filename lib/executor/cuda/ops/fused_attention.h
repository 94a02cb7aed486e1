// FusedAttention (lib/problem/ops/attention.h), of the family of attention.
#pragma once

#include <memory>

#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec, Device& device);

}  // namespace ckplan::cuda
