// FusedAttention (lib/ops/fused_attention.h), of the family of attention.
#pragma once

#include <memory>

#include "lib/backend/backend.h"
#include "lib/base/result.h"

namespace ckplan::cpu {

Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec);

}  // namespace ckplan::cpu
