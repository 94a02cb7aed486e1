// The table of operators of the CPU backend, which cpu_backend.cc joins.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/backend/op_rows.h"

namespace ckplan::cpu {

using PrepareFunction = Result<std::unique_ptr<PreparedOp>> (*)(const OpSpec& spec);
using OpRow = OpRowOf<PrepareFunction>;

const OpTable<OpRow>& Table();

// Returns UnsupportedOp for this backend.
Error Unsupported(const OpSpec& spec, std::string_view what);

// The operators of the CPU backend by family, one file each in ops/. cpu_backend.cc joins them.

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// FusedAttention (lib/problem/ops/attention.h), of the family of attention.
Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec);

}  // namespace ckplan::cpu
