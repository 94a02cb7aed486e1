// The table of operators of the CUDA backend, which registry.cc joins.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/executor/backend/op_rows.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

using PrepareFunction = Result<std::unique_ptr<PreparedOp>> (*)(const OpSpec& spec, Device& device);
using OpRow = OpRowOf<PrepareFunction>;

const OpTable<OpRow>& Table();

// Returns UnsupportedOp for this backend.
Error Unsupported(const OpSpec& spec, std::string_view what);

// The operators of the CUDA backend by family, one or two files each in ops/. registry.cc joins
// them.

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

}  // namespace ckplan::cuda
