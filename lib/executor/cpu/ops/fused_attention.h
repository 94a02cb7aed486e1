// FusedAttention (lib/problem/ops/attention.h), of the family of attention.
#pragma once

#include <memory>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"

namespace ckplan::cpu {

Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec);

}  // namespace ckplan::cpu
