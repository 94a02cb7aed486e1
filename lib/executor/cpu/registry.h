// The CPU backend's operator table, joined in cpu_backend.cc.
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

Error Unsupported(const OpSpec& spec, std::string_view what);

// The CPU backend's operators by family, one file each in ops/.

#define CKPLAN_FAMILY(Name) std::span<const OpRow> Name##Ops();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// FusedAttention (lib/problem/ops/attention.h), part of the attention family.
Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec);

}  // namespace ckplan::cpu
